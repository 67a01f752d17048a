"""Recognise a stream's ordinary chunk: one that differs from the previous one only in its text.

Most events of a stream are ordinary; decoding each as JSON would be most of the cost of observing.
"""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple, Self

from engine_adapter.engines.answer import OutputPart
from engine_adapter.engines.json_fields import within

_GUESSES = 4
"""Failed attempts to learn a shape before giving up on a stream."""
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]+')
"""Text that JSON holds without escapes."""
_PROBE = "draftgate"
_PLACES = ((("choices", 0, "delta", "content"), '"content":'), (("choices", 0, "text"), '"text":'))


class ChunkShape(NamedTuple):
    """The text before and after the words of an ordinary chunk."""

    before: str
    behind: str
    begin: bytes
    """The event's bytes up to its words."""
    end: bytes
    """The event's bytes after its words."""

    @classmethod
    def between(cls, before: str, behind: str) -> Self:
        """Return the shape of chunks with these texts before and after their words."""
        return cls(before, behind, f"data: {before}".encode(), f"{behind}\n\n".encode())

    @classmethod
    def of(cls, text: str, words: str) -> Self | None:
        """Return the shape of an event with these words; `None` if it is not certain.

        It is certain if other words at the same place decode as the first choice's content.
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
        """Return the words of an event of this shape; `None` if the event has another.

        Words with escapes are left to the JSON decoder.
        """
        before, behind = self.before, self.behind
        words = text[len(before) : len(text) - len(behind)]
        if not words or not text.startswith(before) or not text.endswith(behind):
            return None
        return words if '"' not in words and "\\" not in words and words.isprintable() else None

    def words_of_all(self, data: bytes) -> Sequence[str] | None:
        """Return each event's words if the bytes are only whole events of this shape."""
        words = data[len(self.begin) : -len(self.end)]
        if _PLAIN.fullmatch(words) and data.startswith(self.begin) and data.endswith(self.end):
            try:
                return (words.decode(),)
            except UnicodeDecodeError:
                return None
        found, end = self.leading_words(data, 0)
        return found if found and end == len(data) else None

    def leading_words(self, data: bytes, at: int) -> tuple[Sequence[str], int]:
        """Return the words of the events of this shape that start at `at`, and where they end.

        A last event that is cut off is left out.
        """
        begin, end = self.begin, self.end
        found: list[str] = []
        if not data.startswith(begin, at):
            return found, at
        for part in data[at + len(begin) :].split(end + begin):
            words = part if _PLAIN.fullmatch(part) else part.partition(end)[0]
            is_whole = data.startswith(end, at + len(begin) + len(words))
            if not is_whole or _PLAIN.fullmatch(words) is None:
                break
            try:
                found.append(words.decode())
            except UnicodeDecodeError:
                break
            at += len(begin) + len(words) + len(end)
            if words is not part:
                break
        return found, at


class OrdinaryChunks:
    """Recognises one stream's ordinary chunks after learning from one decoded as JSON."""

    def __init__(self) -> None:
        self._shape: ChunkShape | None = None
        self._guesses = _GUESSES

    def words_of_all(self, data: bytes) -> Sequence[str] | None:
        """Return the words if the bytes are only whole ordinary events, else `None`."""
        found = self._shape.words_of_all(data) if self._shape is not None else None
        if found is not None:
            self._guesses = _GUESSES
        return found

    def leading_words(self, data: bytes, at: int) -> tuple[Sequence[str], int]:
        """Return the words of the ordinary events that start at `at`, and where they end."""
        if self._shape is None:
            return (), at
        found = self._shape.leading_words(data, at)
        if found[0]:
            self._guesses = _GUESSES
        return found

    def words_of(self, text: str) -> str | None:
        """Return the words of an ordinary event, else `None`."""
        found = self._shape.words_of(text) if self._shape is not None else None
        if found is not None:
            self._guesses = _GUESSES
        return found

    def learn(self, text: str, piece: OutputPart | None) -> None:
        """Learn the shape from an event that was not recognised and its decoded output."""
        if piece is not None and piece.tokens is None and self._guesses:
            self._guesses -= 1
            self._shape = ChunkShape.of(text, piece.text) or self._shape
