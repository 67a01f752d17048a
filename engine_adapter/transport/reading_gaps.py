"""Detect gaps in which an event loop could not read: bytes that arrived in one share a stamp."""

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from typing import Final

_EVERY_S: Final = 0.005
_LATE_S: Final = 0.01
_KEPT: Final = 64

Gap = tuple[float, float]
"""Begin and end, by `time.perf_counter`."""


class LoopGaps:
    """Reads the clock periodically in an event loop and keeps the latest gaps."""

    def __init__(self) -> None:
        """Start the timer."""
        self.gaps: deque[Gap] = deque(maxlen=_KEPT)
        self._loop = asyncio.get_running_loop()
        self._ticked_s = time.perf_counter()
        self._next = self._loop.call_later(_EVERY_S, self._tick)

    def close(self) -> None:
        """Stop the timer."""
        self._next.cancel()

    def _tick(self) -> None:
        before_s, self._ticked_s = self._ticked_s, time.perf_counter()
        if self._ticked_s - before_s > _LATE_S:
            self.gaps.append((before_s, self._ticked_s))
        self._next = self._loop.call_later(_EVERY_S, self._tick)


def lateness_s(data: bytes, at_s: float, gaps: Iterable[Gap]) -> float:
    """Return how late the stamps of a piece's events may be, in seconds.

    The kernel merges segments that wait to be read and keeps the last one's stamp. A piece of
    several events that arrived within a gap was either merged or sent as one; the two cannot be
    told apart. A single event has its own stamp, whenever it was read.
    """
    if data.count(b"\n\n") + data.count(b"\r\n\r\n") < 2:
        return 0.0
    return max(
        (end_s - begin_s for begin_s, end_s in gaps if begin_s <= at_s <= end_s), default=0.0
    )
