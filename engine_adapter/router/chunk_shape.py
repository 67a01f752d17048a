"""Recognise a stream's ordinary chunk, which differs from the one before in its words alone.

Most events of a stream are such, and to decode each as JSON would be most of what observing costs.
"""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple, Self

from engine_adapter.engines.json_fields import within

_PROBE = "draftgate"
_PLACES = ((("choices", 0, "delta", "content"), '"content":'), (("choices", 0, "text"), '"text":'))


class ChunkShape(NamedTuple):
    """What stands before and behind the words of an ordinary chunk."""

    before: str
    behind: str
    event: re.Pattern[bytes]
    """A whole event of this shape, with its words as a group."""
    around_bytes: int
    """What such an event has besides its words."""

    @classmethod
    def between(cls, before: str, behind: str) -> Self:
        """Return the shape of chunks that have these around their words."""
        ends = f"data: {before}".encode(), f"{behind}\n\n".encode()
        event = re.compile(rb'([^"\\\x00-\x1f]+)'.join(re.escape(end) for end in ends))
        return cls(before, behind, event, sum(map(len, ends)))

    @classmethod
    def of(cls, text: str, words: str) -> Self | None:
        """Return the shape of an event with these words; `None` where it is not certain.

        It is certain where other words in the same place are read as this answer's content.
        """
        for path, name in _PLACES:
            at = text.find(f'"{words}"', text.find(name) + len(name))
            if not words or at < 0:
                continue
            shape = cls.between(text[: at + 1], text[at + 1 + len(words) :])
            try:
                probed = json.loads(f"{shape.before}{_PROBE}{shape.behind}")
            except ValueError:
                continue
            if within(probed, *path) == _PROBE:
                return shape
        return None

    def words_of(self, text: str) -> str | None:
        """Return the words of an event of this shape; `None` where it is of another.

        Words with escapes are left to JSON.
        """
        before, behind = self.before, self.behind
        words = text[len(before) : len(text) - len(behind)]
        if not words or not text.startswith(before) or not text.endswith(behind):
            return None
        return words if '"' not in words and "\\" not in words and words.isprintable() else None

    def words_of_all(self, data: bytes) -> Sequence[str] | None:
        """Return the words of each event, where the bytes are whole events of this shape alone."""
        found = self.event.findall(data)
        if sum(map(len, found)) + len(found) * self.around_bytes != len(data):
            return None
        try:
            return [words.decode() for words in found]
        except UnicodeDecodeError:
            return None
