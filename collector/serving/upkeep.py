"""Background upkeep: rollups, counts of pairs, regressions, silences, and deletion of expired days.

Works in steps of one short transaction, with pauses at least as long as the previous step, so that
senders hardly wait. Of several collectors on one database, the first that finds work takes a lease
and does the upkeep; if it stops renewing the lease, another takes over. If two ever work at once,
the results are still correct, because each step excludes every other writer.
"""

import logging
import math
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Final

from collector.errors import StoreUnavailableError
from collector.serving.silence import Silence
from collector.store import Keep, Store, engine_spans, pair_counts
from collector.store.upkeep import regressions

_FOLD_FROM: Final = 2000
"""From this many pending deltas, fold at once instead of every `_SOON_S`."""
_FOLD_AT_MOST: Final = 1000
_COUNT_AT_MOST: Final = 5000
"""Generations per step; the queries' fixed cost equals that of 5,000 generations."""
_AT_MOST: Final = 500
_SOON_S: Final = 5.0
_RETENTION_S: Final = 3600.0
_LOOK_EVERY_S: Final = 1.0
LEASED_S: Final = 10.0
"""Lease time, after which another collector takes over from an unresponsive one."""
_log = logging.getLogger(__name__)


class Upkeep:
    """A thread that checks every second for upkeep work."""

    def __init__(
        self,
        store: Store,
        keep: Keep,
        *,
        clock: Callable[[], float] = time.time,
        silence: Silence | None = None,
    ) -> None:
        self._store = store
        self._keep = keep
        self._clock = clock
        # The tasks, and the time of each one's next check.
        now = clock()
        self._tasks: dict[Callable[[], int], float] = {
            self._promote: now + _SOON_S,
            self._fold: now,
            self._count_pairs: now + _SOON_S,
            self._order_regressions: now + _SOON_S,
            self._retain: now + _SOON_S,
        }
        if silence is not None:
            # Always due, because the wall clock may be set; it has a clock of its own.
            self._tasks[lambda: silence.look(self._is_ours)] = -math.inf
        self._folded = now
        self._failing = False
        self._name = secrets.token_hex(8)
        self._ours_until_s = 0.0
        """End of the lease by the monotonic clock, counted from before it was requested."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="draftgate-upkeep", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after its current step, and release the lease."""
        self._stopping.set()
        self._thread.join()
        if self._ours_until_s:
            with suppress(StoreUnavailableError):  # otherwise the lease expires
                self._store.release_upkeep(self._name)

    def step(self) -> int:
        """Do one step of a due task in one transaction; return how much, 0 if nothing was due.

        If the database is unavailable, log it once and retry later.
        """
        try:
            done = self._step()
        except StoreUnavailableError as exc:
            if not self._failing:
                _log.warning("upkeep fails and is tried again: %s", exc)
            self._failing = True
            return 0
        if self._failing:
            _log.info("upkeep works again")
        self._failing = False
        return done

    def _step(self) -> int:
        for task, due in list(self._tasks.items()):
            if self._clock() >= due and (done := task()):
                # Move to the end: a task that always has work must not starve the others.
                self._tasks[task] = self._tasks.pop(task)
                return done
        return 0

    def _run(self) -> None:
        pause_s = _LOOK_EVERY_S
        while not self._stopping.wait(pause_s):
            started_s = perf_counter()
            try:
                done = self.step()
            except Exception:
                # A bug in one task must not stop the others.
                _log.exception("upkeep failed")
                done = 0
            pause_s = perf_counter() - started_s if done else _LOOK_EVERY_S

    def _promote(self) -> int:
        before = int(self._clock()) - engine_spans.PATIENCE_S
        with self._store.read() as connection:
            waits = engine_spans.any_overdue(connection, before)
        ours = waits and self._is_ours()
        done = self._store.promote_engine_spans(before, at_most=_AT_MOST) if ours else 0
        return self._later(self._promote, done)

    def _fold(self) -> int:
        with self._store.read() as connection:
            pending = connection.reader.pending_deltas()
        now = self._clock()
        if not pending or (pending < _FOLD_FROM and now < self._folded + _SOON_S):
            return 0
        if not self._is_ours():
            return 0
        if pending <= _FOLD_AT_MOST:
            self._folded = now
        return self._store.fold(at_most=_FOLD_AT_MOST)

    def _count_pairs(self) -> int:
        with self._store.read() as connection:
            waits = pair_counts.any_uncounted(connection)
        done = self._store.count_pairs(at_most=_COUNT_AT_MOST) if waits and self._is_ours() else 0
        return self._later(self._count_pairs, done)

    def _order_regressions(self) -> int:
        with self._store.read() as connection:
            waits = regressions.any_waiting(connection)
        done = self._store.order_regressions(at_most=_AT_MOST) if waits and self._is_ours() else 0
        return self._later(self._order_regressions, done)

    def _retain(self) -> int:
        if self._keep.everything:
            return self._later(self._retain, 0, after_s=_RETENTION_S)
        if not self._is_ours():
            return self._later(self._retain, 0)
        done = self._store.retain(self._keep, self._clock())
        return self._later(self._retain, done, after_s=_RETENTION_S)

    def _is_ours(self) -> bool:
        """Return whether this collector has the upkeep lease; take or renew it if needed."""
        now_s = time.monotonic()
        if now_s > self._ours_until_s - LEASED_S / 2:
            taken = self._store.take_upkeep(self._name, LEASED_S)
            self._ours_until_s = now_s + LEASED_S if taken else 0.0
        return bool(self._ours_until_s)

    def _later(self, task: Callable[[], int], done: int, after_s: float = _SOON_S) -> int:
        """Check the task again at once if it did something, else after `after_s`."""
        if not done:
            self._tasks[task] = self._clock() + after_s
        return done
