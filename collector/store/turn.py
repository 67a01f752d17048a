"""A turn that threads take with work for the interpreter, instead of taking it bit by bit.

The interpreter runs one thread at a time. Decoding and writing let go of its lock around every call
of zstd, RE2 and SQLite, which is once a span and more: two threads that have work then hand the
lock to and fro, and the system spends a quarter of the collector's time on waking them. With a turn
each does a request's worth first.

It is a courtesy, and guards nothing. Whoever has waited for `PATIENCE_S` goes on without it, so
that one that holds it for long, or for ever, makes the others slower and no more.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PATIENCE_S: Final = 0.25


class InterpreterTurn:
    """One thread's at a time, as long as the others are patient."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._lock = threading.Lock()
        self._patience_s = patience_s

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take the turn; for work of the processor alone, which waits for nobody."""
        is_ours = self._lock.acquire(timeout=self._patience_s)
        try:
            yield
        finally:
            if is_ours:
                self._lock.release()
