"""Calls of gRPC whose message is not complete: each holds a thread, so their time is bounded."""

import threading
import time
from collections.abc import Iterator
from typing import Final

import grpc

_WITHIN_S: Final = 30.0
_IN_NEED_S: Final = 0.5
"""The same, while so many wait that others find no thread."""
_LOOKS_EVERY_S: Final = 0.25


class MessageWait:
    """The calls that wait, and the thread that ends those that wait for long."""

    def __init__(self, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._lock = threading.Lock()
        self._since_s: dict[grpc.ServicerContext, float] = {}
        """The one that waits longest first."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="draftgate-grpc-wait", daemon=True)

    def start(self) -> None:
        """Begin to end calls."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def message(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes | None:
        """Return the call's message; None if it ended without one."""
        with self._lock:
            self._since_s[context] = time.monotonic()
        try:
            return next(requests, None)
        except Exception:  # gRPC has none of its own for a call that was cancelled
            return None
        finally:
            with self._lock:
                del self._since_s[context]

    def _run(self) -> None:
        while not self._stopping.wait(_LOOKS_EVERY_S):
            with self._lock:
                in_need = len(self._since_s) >= self._most_waiting
                before_s = time.monotonic() - (_IN_NEED_S if in_need else _WITHIN_S)
                late = [one for one, since_s in self._since_s.items() if since_s < before_s]
            for context in late:
                context.cancel()
