"""Work that no user waits for, once the user has the whole answer.

A client may ask its next question at once, and on the same connection that waits until the last
request is done with: what only the telemetry needs is done some milliseconds behind, in pieces
between which the loop looks after the streams.
"""

import asyncio
from collections import deque
from collections.abc import Callable

_BEHIND_S = 0.005
"""The client's next request is on its way by then."""
_BACKLOG = 32
"""With as much to do, it is done by twos, and so on."""


class DeferredWork:
    """The work that is still to be done, in order."""

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._next: asyncio.Handle | None = None

    def add(self, work: Callable[[], None]) -> None:
        """Do it soon."""
        self._due.append(work)
        if self._next is None:
            self._next = asyncio.get_running_loop().call_later(_BEHIND_S, self._some)

    def close(self) -> None:
        """Do at once what is left."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        while self._due:
            self._due.popleft()()

    def _some(self) -> None:
        number = 1 + len(self._due) // _BACKLOG
        try:
            for _ in range(number):
                self._due.popleft()()
        finally:  # work may have added some
            loop = asyncio.get_running_loop()
            self._next = loop.call_soon(self._some) if self._due else None
