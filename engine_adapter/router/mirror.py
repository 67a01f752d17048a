"""Requests that are sent to the candidate too, off the user's path: answers are read, not returned.

They are model calls and nothing else: tools are described to the model and never run, and routes
that keep something or act on something are not mirrored.
"""

import asyncio
from collections.abc import Callable

from engine_adapter.errors import GenerationError
from engine_adapter.router.attempt import Attempt
from engine_adapter.router.counts import Counts

_BEHIND_S = 0.01
"""The user's own request is on its way by then."""
_STOPPED = GenerationError("router_stopped", "the router was stopped before the answer was whole")


class Mirrors:
    """The mirrored requests in flight, of which there is a bound."""

    def __init__(self, bound: int, counts: Counts) -> None:
        self._bound = bound
        self._counts = counts
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return how many are in flight."""
        return len(self._tasks)

    def has_room(self) -> bool:
        """Say whether one more may be sent; counts it as dropped if not."""
        if len(self._tasks) < self._bound:
            return True
        self._counts.mirrors["dropped"] += 1
        return False

    def start(self, make: Callable[[], Attempt]) -> None:
        """Send one in a task of its own, a moment behind the user's request."""
        task = asyncio.create_task(self._answer(make))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cut what is in flight."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, make: Callable[[], Attempt]) -> None:
        await asyncio.sleep(_BEHIND_S)
        attempt = make()
        try:
            await attempt.answer(_Nobody(), cancelled=_STOPPED)
        finally:
            attempt.finish()
            failed = attempt.failure is not None
            self._counts.mirrors["failed" if failed else "answered"] += 1


class _Nobody:
    """The client of an answer that nobody waits for."""

    def begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        pass

    def write(self, data: bytes) -> None:
        pass

    def takes_more(self) -> bool:
        return True

    async def drained(self) -> None:
        pass

    def end(self, data: bytes = b"") -> None:
        pass

    def whole(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        pass

    def cut(self) -> None:
        pass
