"""Background sending of the notifications in the outbox."""

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import httpx

from collector.errors import StoreUnavailableError
from collector.notify.delivery import TIMEOUT_S, deliver
from collector.notify.targets import Target
from collector.store import Store, notifications
from collector.store.notifications import LONGEST_PAUSE_S, Claim

_POLL_EVERY_S: Final = 1.0
_CLAIMED_S: Final = 2 * TIMEOUT_S
"""Time after which another collector may send a notification claimed by a dead one."""
_NS: Final = 1_000_000_000
_log = logging.getLogger(__name__)


class Notifier:
    """A thread that sends to each target independently, so that none waits for another."""

    def __init__(
        self, store: Store, targets: Iterable[Target], attempted: Callable[[str, str | None], None]
    ) -> None:
        """Call `attempted` after each attempt with the target, and the reason if it failed."""
        self._store = store
        self._targets = tuple(targets)
        self._attempted = attempted
        self._failing: set[str] = set()
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._run, name="draftgate-notifier", daemon=True)

    def start(self) -> None:
        """Start the thread, if there is a target."""
        if self._targets:
            self._thread.start()

    def stop(self) -> None:
        """End the thread; a notification being sent is sent again after its claim expires."""
        if not self._thread.is_alive():
            return
        self._began.wait()
        if self._running is not None:
            loop, task = self._running
            loop.call_soon_threadsafe(task.cancel)
        self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._running = asyncio.get_running_loop(), asyncio.ensure_future(self._follow_all())
        self._began.set()
        await asyncio.gather(self._running[1], return_exceptions=True)

    async def _follow_all(self) -> None:
        async with httpx.AsyncClient() as client:
            await asyncio.gather(*(self._follow(client, target) for target in self._targets))

    async def _follow(self, client: httpx.AsyncClient, target: Target) -> None:
        while True:
            try:
                sent = await self._send_next(client, target)
            except StoreUnavailableError as exc:
                _log.warning("notifications to %s wait for the database: %s", target.name, exc)
                sent = False
            except Exception:
                # A bug with one notification must not stop the others.
                _log.exception("notifications to %s failed", target.name)
                sent = False
            if not sent:
                await asyncio.sleep(_POLL_EVERY_S)

    async def _send_next(self, client: httpx.AsyncClient, target: Target) -> bool:
        """Send the next due notification; return whether it was received."""
        claim = await asyncio.to_thread(self._claim, target)
        if claim is None:
            return False
        failure = await deliver(client, target, claim.notification)
        self._attempted(target.name, failure)
        await asyncio.to_thread(self._settle, claim, failure)
        return failure is None

    def _claim(self, target: Target) -> Claim | None:
        now = time.time_ns()
        with self._store.read() as connection:
            due = notifications.is_due(connection, target.name, target.events, now)
        if not due:
            return None
        until = now + int(_CLAIMED_S * _NS)
        with self._store.transaction() as connection:
            return notifications.claim(
                connection, target.name, target.events, now, until_unix_ns=until
            )

    def _settle(self, claim: Claim, failure: str | None) -> None:
        pause_s = min(LONGEST_PAUSE_S, 2.0**claim.attempts) * random.uniform(0.5, 1)  # noqa: S311  # spreads attempts
        with self._store.transaction() as connection:
            if failure is None:
                notifications.sent(connection, claim)
            else:
                again = time.time_ns() + int(pause_s * _NS)
                notifications.not_sent(connection, claim, again_unix_ns=again)
        if failure is not None and claim.target not in self._failing:
            self._failing.add(claim.target)
            _log.warning("%s does not take notifications, they wait: %s", claim.target, failure)
        elif failure is None and claim.target in self._failing:
            self._failing.discard(claim.target)
            _log.info("%s takes notifications again", claim.target)


def follow(store: Store, targets: Sequence[Target]) -> None:
    """Register new targets; they do not get earlier notifications."""
    if not targets:
        return
    with store.transaction() as connection:
        for target in targets:
            notifications.follow(connection, target.name)
