"""Find the end of a text within a step's tokens: the limit, an end token, or a stop string."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

_SLACK = 8
"""Extra tokens decoded before the longest stop string: a decoder may trim its first token."""


@dataclass(slots=True, kw_only=True)
class Ending:
    """One text's end conditions and the tokens emitted so far."""

    max_tokens: int
    end_tokens: frozenset[int]
    stop_strings: tuple[str, ...] = ()
    decode: Callable[[Sequence[int]], str] | None = None
    """Required if there are stop strings."""
    token_ids: list[int] = field(default_factory=list)
    reason: str | None = None
    """`stop` or `length`, or another reason set by a caller that cancels; `None` while running."""

    def keep(self, emitted: Sequence[int]) -> tuple[int, ...]:
        """Append the tokens up to and including the text's end; return those appended."""
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
        """Return whether the last token completed a stop string."""
        if not self.stop_strings or self.decode is None:
            return False
        # a character has at most four bytes, a token at least one
        tail = self.token_ids[-(4 * max(map(len, self.stop_strings)) + _SLACK) :]
        text = self.decode(tail)
        return any(stop in text for stop in self.stop_strings)
