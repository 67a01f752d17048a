"""When an event loop was kept from reading: what came meanwhile has one stamp, that of its end."""

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
    """Looks at the clock again and again from an event loop, and keeps the latest gaps."""

    def __init__(self) -> None:
        """Begin to look."""
        self.gaps: deque[Gap] = deque(maxlen=_KEPT)
        self._loop = asyncio.get_running_loop()
        self._looked_s = time.perf_counter()
        self._next = self._loop.call_later(_EVERY_S, self._look)

    def close(self) -> None:
        """Look no more."""
        self._next.cancel()

    def _look(self) -> None:
        before_s, self._looked_s = self._looked_s, time.perf_counter()
        if self._looked_s - before_s > _LATE_S:
            self.gaps.append((before_s, self._looked_s))
        self._next = self._loop.call_later(_EVERY_S, self._look)


def lateness_s(data: bytes, at_s: float, gaps: Iterable[Gap]) -> float:
    """Return by how much stamps of a piece's events may be late because of its reader.

    The kernel merges what waits to be read, and keeps the last segment's stamp. A piece of several
    events that came within a gap was merged there, or sent as one: nobody can tell. One event has
    its own stamp, whenever it was read.
    """
    if data.count(b"\n\n") + data.count(b"\r\n\r\n") < 2:
        return 0.0
    return max(
        (end_s - begin_s for begin_s, end_s in gaps if begin_s <= at_s <= end_s), default=0.0
    )
