"""Room for requests that are not complete: what the collector keeps of them before they are.

Each connection has a little of its own. What goes beyond that shares a room: who finds it full is
not read until others have left it, and while somebody waits, those leave it whose peers send next
to nothing. The one that was there first is always read, so that there is always one that ends.
"""

from typing import Final, Protocol

OWN_BYTES: Final = 8 * 1024
"""What each connection may hold apart from the room."""
_ROOM_BYTES: Final = 24 * 2**20
_READ_BYTES: Final = 256 * 1024
"""What is read at once, if there is room."""
_PACE_BYTES: Final = 128 * 1024
_PACE_WITHIN_S: Final = 1.0
"""Who does not send so much within that time makes room for those that wait."""
_MOST_BEGUN: Final = 64
"""Requests without all of their body that the application may have begun."""


class UnfinishedRequest(Protocol):
    """What comes over one connection, as far as the others are concerned."""

    unfinished_bytes: int
    """Held of requests that are not complete."""
    paced_s: float
    """When so much had last come as has to come in time, by the loop's clock."""
    paced_bytes: int
    """What has come since."""

    def pause_for_room(self) -> None:
        """Read no more."""

    def resume_for_room(self) -> None:
        """Read on."""

    def abort(self) -> None:
        """Close at once."""


class UnfinishedRequests:
    """Those of one server; for its event loop alone."""

    def __init__(self) -> None:
        self.held_bytes = 0
        """By those that are in the room."""
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._inside: dict[UnfinishedRequest, None] = {}
        """The one that was there first, first."""
        self._waiting: dict[UnfinishedRequest, None] = {}
        """Of those inside, who is not read."""
        self._begun: set[UnfinishedRequest] = set()

    def buffer(self, request: UnfinishedRequest) -> memoryview:
        """Return where to read to; it is one for all, and holds nothing that is needed."""
        if request.unfinished_bytes >= OWN_BYTES and self._has_room(request):
            return self._buffer
        return self._buffer[:OWN_BYTES]

    def may_begin(self, request: UnfinishedRequest) -> bool:
        """Say whether the application may begin a request whose body is not complete."""
        if len(self._begun) < _MOST_BEGUN:
            self._begun.add(request)
        return request in self._begun

    def came(self, request: UnfinishedRequest, size_bytes: int, now_s: float) -> bool:
        """Note what has come; say whether that is at a pace at which requests end."""
        was_inside = request in self._inside
        request.unfinished_bytes += size_bytes
        request.paced_bytes += size_bytes
        is_at_pace = request.paced_bytes >= _PACE_BYTES or not was_inside
        if is_at_pace:
            request.paced_s, request.paced_bytes = now_s, 0
        if was_inside:
            self.held_bytes += size_bytes
        elif request.unfinished_bytes > OWN_BYTES:
            self._inside[request] = None
            self.held_bytes += request.unfinished_bytes
        if request in self._inside and not self._has_room(request):
            self._waiting[request] = None
            request.pause_for_room()
        return is_at_pace

    def ended(self, request: UnfinishedRequest, now_s: float) -> None:
        """Note that a request is complete, or of no more use."""
        self._begun.discard(request)
        if request in self._inside:
            del self._inside[request]
            self.held_bytes -= request.unfinished_bytes
        request.unfinished_bytes = request.paced_bytes = 0
        self._resume(request, now_s)
        while self._waiting:
            first = next(iter(self._inside))
            found = first if first in self._waiting else next(iter(self._waiting))
            if not self._has_room(found):
                return
            self._resume(found, now_s)

    def end_slow(self, now_s: float) -> None:
        """If somebody waits for room, end those that keep it without need."""
        if not self._waiting:
            return
        for request in list(self._inside):
            if request not in self._waiting and request.paced_s < now_s - _PACE_WITHIN_S:
                request.abort()
                self.ended(request, now_s)

    def _has_room(self, request: UnfinishedRequest) -> bool:
        return self.held_bytes < _ROOM_BYTES or next(iter(self._inside), None) is request

    def _resume(self, request: UnfinishedRequest, now_s: float) -> None:
        if request in self._waiting:
            del self._waiting[request]
            request.paced_s, request.paced_bytes = now_s, 0
            request.resume_for_room()
