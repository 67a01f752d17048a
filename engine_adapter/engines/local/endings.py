"""Where a text ends inside what a step emitted: its limit, an end token, or a stop string."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

_SLACK = 8
"""Tokens decoded beyond those that a stop string can span: a decoder may trim its first."""


@dataclass(slots=True, kw_only=True)
class Ending:
    """One text's conditions, and what was emitted of it so far."""

    max_tokens: int
    end_tokens: frozenset[int]
    stop_strings: tuple[str, ...] = ()
    decode: Callable[[Sequence[int]], str] | None = None
    """Wanted where there are stop strings."""
    token_ids: list[int] = field(default_factory=list)
    reason: str | None = None
    """`stop` or `length`; `None` while the text grows."""

    def keep(self, emitted: Sequence[int]) -> tuple[int, ...]:
        """Return the tokens up to the text's end, that one included."""
        before = len(self.token_ids)
        for token in emitted:
            if self.reason is not None:
                break
            self.token_ids.append(token)
            if token in self.end_tokens or self._stopped():
                self.reason = "stop"
            elif len(self.token_ids) == self.max_tokens:
                self.reason = "length"
        return tuple(self.token_ids[before:])

    def _stopped(self) -> bool:
        """Say whether the last token completed a stop string."""
        if not self.stop_strings or self.decode is None:
            return False
        # a character is four bytes at most, and a token one byte at least
        tail = self.token_ids[-(4 * max(map(len, self.stop_strings)) + _SLACK) :]
        text = self.decode(tail)
        return any(stop in text for stop in self.stop_strings)
