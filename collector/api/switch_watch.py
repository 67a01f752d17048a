"""Long polling of switches: any number of requests wait without a database connection or thread.

A change made through this process wakes them at once. Changes made by other processes are found by
polling the database twice a second, once for all waiting requests.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from fastapi.concurrency import run_in_threadpool

from collector.errors import StoreUnavailableError
from collector.store import Store
from collector.store.release import switches

_POLL_EVERY_S: Final = 0.5


class SwitchWatch:
    """Wakes requests that wait on the event loop for a switch to change."""

    def __init__(self, store: Store, *, poll_every_s: float = _POLL_EVERY_S) -> None:
        self._query = _query_of(store)
        self._poll_every_s = poll_every_s
        self._newest: dict[str, int] = {}
        self._polled_up_to = 0
        self._waiting = 0
        self._polling: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._ended = False
        self._failing = False

    async def note(self, rollout: str, id_: int) -> None:
        """Wake the requests that wait for the rollout: an event with this id is stored."""
        await self._note({rollout: id_})

    async def wait_for(self, rollout: str, since: int, wait_s: float) -> None:
        """Wait for an event of the rollout after `since`, the timeout, or the app's shutdown.

        Read the database first: events stored before are not reported.
        """
        self._waiting += 1
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s), self._changed:
                    await self._changed.wait_for(
                        lambda: self._ended or self._newest.get(rollout, 0) > since
                    )
        finally:
            self._waiting -= 1

    async def end(self) -> None:
        """Wake all waiting requests, and let later ones not wait."""
        self._ended = True
        async with self._changed:
            self._changed.notify_all()
        if self._polling is not None:
            await self._polling

    async def _poll(self) -> None:
        """Poll the database twice a second while any request waits."""
        try:
            while self._waiting and not self._ended:
                with suppress(StoreUnavailableError):
                    found = await run_in_threadpool(self._query, self._polled_up_to)
                    self._polled_up_to = max([self._polled_up_to, *found.values()])
                    await self._note(found)
                await self._sleep()
        finally:
            self._polling = None  # the next waiting request starts polling again

    async def _sleep(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll_every_s), self._changed:
                await self._changed.wait_for(lambda: self._ended)

    async def _note(self, found: Mapping[str, int]) -> None:
        async with self._changed:
            for rollout, id_ in found.items():
                self._newest[rollout] = max(id_, self._newest.get(rollout, 0))
            if found:
                self._changed.notify_all()


def _query_of(store: Store) -> Callable[[int], dict[str, int]]:
    def ask(after: int) -> dict[str, int]:
        with store.read() as connection:
            return switches.changed_since(connection, after)

    return ask
