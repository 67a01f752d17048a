"""Admission control: limits the bytes that wait for the store, to a few seconds' work.

Senders time out, after ten seconds in OpenTelemetry's exporters, and send again. Bodies that wait
longer would be written in vain, and the queue would prolong an overload.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from collector.errors import QueueFullError

LONGEST_WAIT_S: Final = 5.0
_WINDOW_S: Final = 1.0
_LEAST_SHARE: Final = 4
"""Small bodies may always fill a quarter: the write rate varies, and large ones are interleaved."""
_SMALL_BYTES: Final = 2**20
"""Largest small body."""
_log = logging.getLogger(__name__)


class Admission:
    """Counts the bytes reserved by bodies, and the rate at which they are released."""

    def __init__(self, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._held_bytes = self._held_small_bytes = 0
        self._bytes_per_s: float | None = None
        self._given_back_bytes = 0
        self._since_s = 0.0
        self._refused = 0
        """Refusals since the queue was last empty."""

    @property
    def held_bytes(self) -> int:
        """Bytes currently reserved by bodies."""
        return self._held_bytes

    def check(self, size_bytes: int) -> None:
        """Raise `QueueFullError` if there is no room for a body now; reserves nothing."""
        with self._lock:
            self._check(size_bytes)

    @contextmanager
    def room(self, size_bytes: int) -> Iterator["Room"]:
        """Reserve room for a body, from before it is decompressed or decoded until it is answered.

        A body larger than the limit is admitted if nothing else is. Raises `QueueFullError` if
        there is no room.
        """
        room = Room(self)
        room.widen(size_bytes)
        try:
            yield room
        finally:
            with self._lock:
                self._give_back(room.held_bytes)

    def widen(self, room: "Room", size_bytes: int) -> None:
        """Reserve at least this much for a body; raises `QueueFullError` if there is no room.

        For a body that has a reservation only the memory limit counts, not the write rate: it may
        still be written in time.
        """
        with self._lock:
            more = size_bytes - room.held_bytes
            if more > 0:
                self._check(more, room.held_bytes)
                self._take(room.held_bytes, size_bytes)
                room.held_bytes = size_bytes

    def _check(self, size_bytes: int, own_bytes: int = 0) -> None:
        held = self._held_bytes
        allowed = self._max_bytes if own_bytes else self._allowed_bytes()
        is_full = held > own_bytes and held + size_bytes > allowed
        if is_full and not self._may_always_wait(own_bytes + size_bytes, own_bytes):
            bound = (
                f"{allowed} allowed; send this again later, or raise DRAFTGATE_MAX_QUEUE_BYTES"
                if allowed == self._max_bytes
                else f"{allowed} that are written in {LONGEST_WAIT_S:g} s; send this again later"
            )
            self._note_refusal()
            raise QueueFullError(f"{held} bytes wait to be written, of {bound}")

    def _may_always_wait(self, size_bytes: int, own_bytes: int) -> bool:
        held_bytes = self._held_small_bytes - _if_small(own_bytes)
        return size_bytes <= _SMALL_BYTES and held_bytes + size_bytes <= self._least_bytes

    @property
    def _least_bytes(self) -> int:
        return self._max_bytes // _LEAST_SHARE

    def _take(self, held_bytes: int, size_bytes: int) -> None:
        """Reserve `size_bytes` for a body that has reserved `held_bytes` of them."""
        if not self._held_bytes:  # an idle time must not count in the write rate
            self._since_s, self._given_back_bytes = self._clock(), 0
        self._held_bytes += size_bytes - held_bytes
        self._held_small_bytes += _if_small(size_bytes) - _if_small(held_bytes)

    def _give_back(self, size_bytes: int) -> None:
        if not size_bytes:  # nor must an empty body that comes in an idle time
            return
        self._held_bytes -= size_bytes
        self._held_small_bytes -= _if_small(size_bytes)
        self._given_back_bytes += size_bytes
        now_s = self._clock()
        if now_s - self._since_s >= _WINDOW_S:
            self._bytes_per_s = self._given_back_bytes / (now_s - self._since_s)
            self._since_s, self._given_back_bytes = now_s, 0
        if self._refused and not self._held_bytes:
            _log.info("all that waited is written; %d requests were refused", self._refused)
            self._refused = 0

    def _note_refusal(self) -> None:
        """Log that requests are refused, once until the queue is empty again."""
        if not self._refused:
            _log.warning("more is sent than can be written: senders are told to come again")
        self._refused += 1

    def _allowed_bytes(self) -> int:
        if self._bytes_per_s is None:
            return self._max_bytes
        in_time = max(int(self._bytes_per_s * LONGEST_WAIT_S), self._least_bytes)
        return min(in_time, self._max_bytes)


class Room:
    """The room reserved by one body."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self.held_bytes = 0

    def widen(self, size_bytes: int) -> None:
        """Reserve at least this much; raises `QueueFullError` if there is no room."""
        self._admission.widen(self, size_bytes)


def _if_small(size_bytes: int) -> int:
    return size_bytes if size_bytes <= _SMALL_BYTES else 0
