"""The writer thread: writes all pending batches in one transaction and resolves their futures.

A batch is acknowledged only after the commit. `admission` bounds the queue; beyond it senders get a
retryable refusal. If the store fails, the requests of that transaction fail and the writer
continues.
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
    """The queue in front of the store, and its writer thread."""

    def __init__(
        self, store: Store, *, max_queue_bytes: int, counters: Counters | None = None
    ) -> None:
        self.admission = Admission(max_queue_bytes)
        self.turn = InterpreterTurn()
        """Held by threads while they decode bodies, and by the writer while it writes."""
        self._store = store
        self._counters = counters if counters is not None else Counters()
        self._failing = False
        self._pending: deque[_Pending] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        # A daemon, so that a program may exit without stop(): nothing acknowledged is lost.
        self._thread = threading.Thread(target=self._run, name="draftgate-writer", daemon=True)

    def start(self) -> None:
        """Start the writer thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write pending batches, then end the thread; later submissions are refused."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def submit(self, batch: Batch) -> Future[None]:
        """Return a future that is done once the batch is durable.

        Raises, or sets as the future's exception, `StoreUnavailableError` if the batch cannot be
        stored now; nothing of it is stored then.
        """
        written: Future[None] = Future()
        with self._changed:
            if self._stopping:
                raise StoreUnavailableError(_STOPPING, for_sender=_STOPPING)
            self._pending.append(_Pending(batch, written))
            self._changed.notify()
        return written

    async def write(self, batch: Batch) -> None:
        """Wait until the batch is durable; raises as `submit`."""
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
            # A cancelled request is not answered, so its rows need not be written.
            self._write([item for item in taken if item.written.set_running_or_notify_cancel()])
            taken.clear()  # free the stored rows before waiting for the next batch

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
            # The thread must survive any error, and one request must not fail the others: write
            # each separately.
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
        """Log that storing fails, once until it works again, because senders retry often."""
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
