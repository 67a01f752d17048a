"""Memory limit for incomplete requests.

Each connection may buffer a little. Beyond that, connections share a room: if it is full, they are
not read until others have left it, and while any of them waits, connections whose peers send too
slowly or for too long are closed. The first one in the room is always read, so that one can always
complete.
"""

import math
from typing import Final

from collector.serving.tracked_connection import TrackedConnection

OWN_BYTES: Final = 8 * 1024
"""Bytes that each connection may hold outside the room."""
_ROOM_BYTES: Final = 24 * 2**20
_READ_BYTES: Final = 256 * 1024
"""Most bytes read at once, if there is room."""
_PACE_BYTES: Final = 128 * 1024
_PACE_WITHIN_S: Final = 1.0
"""A connection that sends fewer than `_PACE_BYTES` in this time is closed if others wait."""
_LEAVE_WITHIN_S: Final = 10.0
"""A connection that stays in the room for longer, while others wait for so long, is closed."""
_MOST_BEGUN: Final = 64
"""Most requests with an incomplete body that the application may have begun."""


class UnfinishedRequests:
    """The incomplete requests of one server; use only in its event loop."""

    def __init__(self) -> None:
        self.held_bytes = 0
        """Bytes held by the requests in the room."""
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._inside: dict[TrackedConnection, float] = {}
        """When each request in the room was first read there, or read again; in order of entry."""
        self._full_s = math.inf
        """When requests began to wait for room."""
        self._waiting: dict[TrackedConnection, None] = {}
        """The requests in the room whose reading is paused."""
        self._begun: set[TrackedConnection] = set()

    def buffer(self, request: TrackedConnection) -> memoryview:
        """Return the buffer to receive into; all connections share it."""
        if request.unfinished_bytes >= OWN_BYTES and self._has_room(request):
            return self._buffer
        return self._buffer[:OWN_BYTES]

    def may_begin(self, request: TrackedConnection) -> bool:
        """Return whether the application may begin a request with an incomplete body."""
        if len(self._begun) < _MOST_BEGUN:
            self._begun.add(request)
        return request in self._begun

    def count_received(self, request: TrackedConnection, size_bytes: int, now_s: float) -> bool:
        """Count received bytes; return whether the request is fast enough."""
        was_inside = request in self._inside
        request.unfinished_bytes += size_bytes
        request.paced_bytes += size_bytes
        is_at_pace = request.paced_bytes >= _PACE_BYTES or not was_inside
        if is_at_pace:
            request.paced_s, request.paced_bytes = now_s, 0
        if was_inside:
            self.held_bytes += size_bytes
        elif request.unfinished_bytes > OWN_BYTES:
            self._inside[request] = now_s
            self.held_bytes += request.unfinished_bytes
        if request in self._inside and not self._has_room(request):
            self._full_s = self._full_s if self._waiting else now_s
            self._waiting[request] = None
            request.pause_for_room()
        return is_at_pace

    def ended(self, request: TrackedConnection, now_s: float) -> None:
        """Release the room of a request that is complete or aborted."""
        self._begun.discard(request)
        self.keep(request, 0, now_s)

    def keep(self, request: TrackedConnection, size_bytes: int, now_s: float) -> None:
        """Release the room of all but `size_bytes`: some requests of a connection have ended."""
        if request in self._inside:
            self.held_bytes -= request.unfinished_bytes - size_bytes
            if size_bytes <= OWN_BYTES:
                del self._inside[request]
                self.held_bytes -= size_bytes
        request.unfinished_bytes = size_bytes
        request.paced_bytes = min(request.paced_bytes, size_bytes)
        if request not in self._inside or self._has_room(request):
            self._resume(request, now_s)
        while self._waiting:
            first = next(iter(self._inside))
            found = first if first in self._waiting else next(iter(self._waiting))
            if not self._has_room(found):
                return
            self._resume(found, now_s)

    def end_slow(self, now_s: float) -> None:
        """If any request waits for room, close those of slow and long ones."""
        if not self._waiting:
            return
        for request in list(self._inside):
            is_slow = request.paced_s < now_s - _PACE_WITHIN_S
            waited_for_s = max(self._inside[request], self._full_s)
            stays = bool(self._waiting) and waited_for_s < now_s - _LEAVE_WITHIN_S
            if request not in self._waiting and (is_slow or stays):
                request.abort()
                self.ended(request, now_s)

    def _has_room(self, request: TrackedConnection) -> bool:
        return self.held_bytes < _ROOM_BYTES or next(iter(self._inside), None) is request

    def _resume(self, request: TrackedConnection, now_s: float) -> None:
        if request in self._waiting:
            del self._waiting[request]
            request.paced_s, request.paced_bytes = now_s, 0
            if request in self._inside:
                self._inside[request] = now_s
            request.resume_for_room()
