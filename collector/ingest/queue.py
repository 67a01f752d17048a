"""One writer thread: it takes all that is pending, writes one transaction, answers every waiter.

Acknowledged means committed. What waits is bounded by its `admission`; beyond that senders are told
to come again. A store that fails fails the requests of that transaction, and the writer goes on.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from time import perf_counter
from typing import NamedTuple

from collector.errors import StoreUnavailableError
from collector.ingest.admission import Admission
from collector.ingest.counters import Counters
from collector.store import Batch, Store, merge
from collector.store.turn import InterpreterTurn

_STOPPING = "the collector is stopping; send this again later"
_log = logging.getLogger(__name__)


class _Pending(NamedTuple):
    batch: Batch
    written: Future[None]


class Ingest:
    """The queue in front of the store, and the thread that empties it."""

    def __init__(
        self, store: Store, *, max_queue_bytes: int, counters: Counters | None = None
    ) -> None:
        self.admission = Admission(max_queue_bytes)
        self.turn = InterpreterTurn()
        """To be taken by who decodes what will be submitted; the writer takes it too."""
        self._store = store
        self._counters = counters if counters is not None else Counters()
        self._failing = False
        self._pending: deque[_Pending] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        # A daemon, so that a program may end without stop(): nothing acknowledged is lost by it.
        self._thread = threading.Thread(target=self._run, name="draftgate-writer", daemon=True)

    def start(self) -> None:
        """Start the writer thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is pending, then end the thread; nothing may be submitted any more."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def submit(self, batch: Batch) -> Future[None]:
        """Return what is done once the batch is durable.

        Raises, or gives, `StoreUnavailableError` where it cannot be stored now; nothing of it is
        then.
        """
        written: Future[None] = Future()
        with self._changed:
            if self._stopping:
                raise StoreUnavailableError(_STOPPING, for_sender=_STOPPING)
            self._pending.append(_Pending(batch, written))
            self._changed.notify()
        return written

    async def write(self, batch: Batch) -> None:
        """Return once the batch is durable; raises as `submit` does."""
        await asyncio.wrap_future(self.submit(batch))

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._pending and not self._stopping:
                    self._changed.wait()
                taken = list(self._pending)
                self._pending.clear()
                if not taken:
                    return
            # A waiter that went away is not answered, so its rows need not be written.
            self._write([item for item in taken if item.written.set_running_or_notify_cancel()])
            taken.clear()  # while the next one is waited for, rows that are stored are let go of

    def _write(self, items: Sequence[_Pending]) -> None:
        batch = merge(item.batch for item in items)
        started_s = perf_counter()
        try:
            stored = self._store.write(batch, self.turn)
        except StoreUnavailableError as exc:
            self._counters.commits_failed += 1
            self._note_failing(exc)
            _fail(items, exc)
        except Exception as exc:
            # Whatever it is, the thread must survive it, and one request must not take the
            # others with it: each is written alone.
            if len(items) > 1:
                for item in items:
                    self._write([item])
            else:
                _log.exception("a request could not be stored")
                _fail(items, exc)
        else:
            self._counters.committed(len(batch.spans), stored, perf_counter() - started_s)
            self._note_working()
            for item in items:
                item.written.set_result(None)

    def _note_failing(self, exc: StoreUnavailableError) -> None:
        """Log that storing fails, once until it works again: senders try many times."""
        if not self._failing:
            _log.warning("storing fails, senders are told to come again: %s", exc)
        self._failing = True

    def _note_working(self) -> None:
        if self._failing:
            _log.info("storing works again")
        self._failing = False


def _fail(items: Sequence[_Pending], exc: Exception) -> None:
    for item in items:
        item.written.set_exception(exc)
