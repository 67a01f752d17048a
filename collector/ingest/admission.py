"""How much may wait for the store: so many bytes, and not more than a few seconds' work.

A sender gives up by a time limit of its own, ten seconds in OpenTelemetry's exporters, and sends
again: what waits longer is written for nobody, and an overload outlasts itself by the queue.
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
"""A quarter of the bytes may always wait: the pace of a moment says little about the next."""
_log = logging.getLogger(__name__)


class Admission:
    """Counts the bytes of the bodies that hold room, and the pace at which they give it back."""

    def __init__(self, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._held_bytes = 0
        self._bytes_per_s: float | None = None
        self._given_back_bytes = 0
        self._since_s = 0.0
        self._refused = 0
        """Since everything that waited was last written."""

    @property
    def held_bytes(self) -> int:
        """Bytes of the bodies that hold room now."""
        return self._held_bytes

    def check(self, size_bytes: int) -> None:
        """Raise `QueueFullError` where there is no room for a body now; holds none for it."""
        with self._lock:
            self._check(size_bytes)

    @contextmanager
    def room(self, size_bytes: int) -> Iterator["Room"]:
        """Hold room for a body, from before it is inflated or decoded until it is answered.

        A body larger than all the room is let in when nothing else is. Raises `QueueFullError`
        where there is no room.
        """
        room = Room(self)
        room.widen(size_bytes)
        try:
            yield room
        finally:
            with self._lock:
                self._give_back(room.held_bytes)

    def widen(self, room: "Room", size_bytes: int) -> None:
        """Hold as much for a body at least; raises `QueueFullError` where there is no room.

        A body that holds room already may be written in time: it has to fit the memory alone.
        """
        with self._lock:
            more = size_bytes - room.held_bytes
            if more > 0:
                self._check(more, room.held_bytes)
                self._take(more)
                room.held_bytes = size_bytes

    def _check(self, size_bytes: int, own_bytes: int = 0) -> None:
        held = self._held_bytes
        allowed = self._max_bytes if own_bytes else self._allowed_bytes()
        if held > own_bytes and held + size_bytes > allowed:
            bound = (
                f"{allowed} allowed; send this again later, or raise DRAFTGATE_MAX_QUEUE_BYTES"
                if allowed == self._max_bytes
                else f"{allowed} that are written in {LONGEST_WAIT_S:g} s; send this again later"
            )
            self._note_refusal()
            raise QueueFullError(f"{held} bytes wait to be written, of {bound}")

    def _take(self, size_bytes: int) -> None:
        if not self._held_bytes:  # while nothing waits, nothing says how fast it would be written
            self._since_s, self._given_back_bytes = self._clock(), 0
        self._held_bytes += size_bytes

    def _give_back(self, size_bytes: int) -> None:
        self._held_bytes -= size_bytes
        self._given_back_bytes += size_bytes
        now_s = self._clock()
        if now_s - self._since_s >= _WINDOW_S:
            self._bytes_per_s = self._given_back_bytes / (now_s - self._since_s)
            self._since_s, self._given_back_bytes = now_s, 0
        if self._refused and not self._held_bytes:
            _log.info("all that waited is written; %d requests were refused", self._refused)
            self._refused = 0

    def _note_refusal(self) -> None:
        """Log that requests are refused, once until all that waits is written."""
        if not self._refused:
            _log.warning("more is sent than can be written: senders are told to come again")
        self._refused += 1

    def _allowed_bytes(self) -> int:
        if self._bytes_per_s is None:
            return self._max_bytes
        in_time = max(int(self._bytes_per_s * LONGEST_WAIT_S), self._max_bytes // _LEAST_SHARE)
        return min(in_time, self._max_bytes)


class Room:
    """What one body holds."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self.held_bytes = 0

    def widen(self, size_bytes: int) -> None:
        """Hold as much at least; raises `QueueFullError` where there is no room for it."""
        self._admission.widen(self, size_bytes)
