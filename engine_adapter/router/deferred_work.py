"""Telemetry work postponed until after the user has the whole answer.

The next request on the same connection starts only when the last one is finished, so work that
only telemetry needs runs a few milliseconds later, in small pieces between which the event loop
serves the streams.
"""

import asyncio
from collections import deque
from collections.abc import Callable

_BEHIND_S = 0.005
"""Delay, so that the client's next request is sent to the engine first."""
_BACKLOG = 32
"""One more item is done per step for every 32 that wait."""


class DeferredWork:
    """A queue of postponed work, done in order."""

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._next: asyncio.Handle | None = None

    def add(self, work: Callable[[], None]) -> None:
        """Queue the work."""
        self._due.append(work)
        if self._next is None:
            self._next = asyncio.get_running_loop().call_later(_BEHIND_S, self._run_some)

    def close(self) -> None:
        """Do the remaining work at once."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        while self._due:
            self._due.popleft()()

    def _run_some(self) -> None:
        number = 1 + len(self._due) // _BACKLOG
        try:
            for _ in range(number):
                self._due.popleft()()
        finally:  # the work may have queued more
            loop = asyncio.get_running_loop()
            self._next = loop.call_soon(self._run_some) if self._due else None
