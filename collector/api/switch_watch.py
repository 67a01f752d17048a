"""Waiting for switches: any number of requests wait without a connection or a thread of their own.

A change that is made through this process wakes them at once. One that another process makes is
found by asking the database twice a second, for all who wait together.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from fastapi.concurrency import run_in_threadpool

from collector.errors import StoreUnavailableError
from collector.store import Store, switches

_ASK_EVERY_S: Final = 0.5
_log = logging.getLogger(__name__)


class SwitchWatch:
    """Tells those who wait on an event loop of switches that have changed."""

    def __init__(self, store: Store, *, ask_every_s: float = _ASK_EVERY_S) -> None:
        self._ask = _asker(store)
        self._ask_every_s = ask_every_s
        self._newest: dict[str, int] = {}
        self._asked_up_to = 0
        self._waiting = 0
        self._asking: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._ended = False
        self._failing = False

    async def note(self, rollout: str, id_: int) -> None:
        """Wake those who wait for the rollout: this event of it is stored."""
        await self._note({rollout: id_})

    async def wait_for(self, rollout: str, since: int, wait_s: float) -> None:
        """Return once the rollout has an event after `since`, or the time is over, or the app is.

        Whoever waits must have looked at the database before.
        """
        self._waiting += 1
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_for_all())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s), self._changed:
                    await self._changed.wait_for(
                        lambda: self._ended or self._newest.get(rollout, 0) > since
                    )
        finally:
            self._waiting -= 1

    async def end(self) -> None:
        """Let everybody go, at once and from now on."""
        self._ended = True
        async with self._changed:
            self._changed.notify_all()
        if self._asking is not None:
            await self._asking

    async def _ask_for_all(self) -> None:
        """Ask the database twice a second for as long as anybody waits."""
        try:
            while self._waiting and not self._ended:
                with suppress(StoreUnavailableError):
                    found = await run_in_threadpool(self._ask, self._asked_up_to)
                    self._asked_up_to = max([self._asked_up_to, *found.values()])
                    await self._note(found)
                await self._sleep()
        finally:
            self._asking = None  # whoever waits next asks again, whatever ended this

    async def _sleep(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._ask_every_s), self._changed:
                await self._changed.wait_for(lambda: self._ended)

    async def _note(self, found: Mapping[str, int]) -> None:
        async with self._changed:
            for rollout, id_ in found.items():
                self._newest[rollout] = max(id_, self._newest.get(rollout, 0))
            if found:
                self._changed.notify_all()


def _asker(store: Store) -> Callable[[int], dict[str, int]]:
    def ask(after: int) -> dict[str, int]:
        with store.read() as connection:
            return switches.changed_since(connection, after)

    return ask
