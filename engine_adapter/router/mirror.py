"""Mirrored requests: also sent to the candidate, whose answers are recorded but never returned.

Only model calls are mirrored: tools are described to the model and never run, and routes with
side effects are not mirrored.
"""

import asyncio
from collections.abc import Callable

from engine_adapter.errors import GenerationError
from engine_adapter.router.attempt import Attempt
from engine_adapter.router.counts import Counts

_BEHIND_S = 0.01
"""Delay of a mirrored request, so that the user's own request is sent first."""
_STOPPED = GenerationError("router_stopped", "the router was stopped before the answer was whole")


class Mirrors:
    """The mirrored requests in flight, at most `bound`."""

    def __init__(self, bound: int, counts: Counts) -> None:
        self._bound = bound
        self._counts = counts
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return the number in flight."""
        return len(self._tasks)

    def has_room(self) -> bool:
        """Return whether one more may be sent; if not, count it as dropped."""
        if len(self._tasks) < self._bound:
            return True
        self._counts.mirrors["dropped"] += 1
        return False

    def start(self, make: Callable[[], Attempt]) -> None:
        """Send a mirrored request in a new task, shortly after the user's request."""
        task = asyncio.create_task(self._answer(make))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel the mirrored requests in flight."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, make: Callable[[], Attempt]) -> None:
        await asyncio.sleep(_BEHIND_S)
        attempt = make()
        try:
            await attempt.answer(_DiscardingClient(), cancelled=_STOPPED)
        finally:
            attempt.finish()
            failed = attempt.failure is not None
            self._counts.mirrors["failed" if failed else "answered"] += 1


class _DiscardingClient:
    """A `Client` that discards the answer."""

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
