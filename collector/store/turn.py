"""A lock that lets one thread at a time do CPU-bound work, to avoid contention for the GIL.

Decoding and writing release the GIL around every call of zstd, RE2 and SQLite, at least once per
span: two busy threads then pass the GIL back and forth, and waking them takes a quarter of the
collector's time. With this lock each thread completes a request's work first.

The lock protects no data. A thread that has waited for `PATIENCE_S` continues without it, so a
thread that holds it too long only slows the others down.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PATIENCE_S: Final = 0.25


class InterpreterTurn:
    """An advisory lock with a limited wait."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._lock = threading.Lock()
        self._patience_s = patience_s

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the lock; only for CPU-bound work that does not wait for anything."""
        is_ours = self._lock.acquire(timeout=self._patience_s)
        try:
            yield
        finally:
            if is_ours:
                self._lock.release()
