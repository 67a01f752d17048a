"""An HTTP connection with limits, in front of uvicorn's unmodified protocol.

Limits the size and duration of what a peer sends or reads: a head and its headers, a body, and the
reading of a response.
"""

import asyncio
import math
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from collector.serving.connections import Connections, peer_of
from collector.serving.request_framing import (
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    HeadTooLargeError,
    Phase,
    RequestFraming,
)
from collector.serving.tracked_connection import TrackedConnection

HEAD_WITHIN_S: Final = 10.0
"""Timeout for the first byte, and from then for a complete head."""
BODY_WITHIN_S: Final = 30.0
"""Timeout for a body, plus one second for each `BODY_BYTES_PER_S` received."""
BODY_BYTES_PER_S: Final = 16 * 1024
READ_WITHIN_S: Final = 60.0
"""Timeout for a peer to read some of a response."""
LINGER_S: Final = 2.0
"""Time for a refused peer to read the response."""
_MOST_READ_AWAY_BYTES: Final = 1024 * 1024
"""Bytes discarded from a refused peer, which could not read the response after a reset."""
_MOST_WAITING: Final = 32
"""Most pipelined requests on one connection."""
_TOO_LARGE = (
    f"the request's head is beyond {MAX_HEAD_BYTES} bytes or {MAX_HEADERS} headers; send less"
)
_LATE = f"the request's head was not complete after {HEAD_WITHIN_S:g} s; send it at once"


class BoundedConnection(TrackedConnection, asyncio.BufferedProtocol):
    """Counts received bytes, and passes them to uvicorn's protocol."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        """Any: uvicorn's options of a connection."""
        super().__init__()
        self._connections = connections
        self._begin_requests = partial(HttpToolsProtocol, **options)
        self._requests: HttpToolsProtocol | None = None
        """uvicorn's protocol; None before the first byte, which most flooding peers never send."""
        self._framing = RequestFraming()
        self._answered = 0
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._reading: _Reading
        self._buffer: memoryview
        self._kept: list[bytes] = []
        """Pieces of a request that is passed on only once it is complete."""
        self._refused = False
        self._read_away_bytes = 0
        self._due_s = math.inf
        self._readable_due_s = math.inf

    # The interface for `Connections`

    @property
    def waits_for_peer(self) -> bool:
        """As in `TrackedConnection`."""
        if self._framing.phase is Phase.BODY:
            is_behind_another = self._framing.requests - self._answered > 1
            return not (is_behind_another or self._reading.is_paused_by_application)
        return self.is_idle

    @property
    def is_idle(self) -> bool:
        """As in `TrackedConnection`."""
        return self._framing.requests == self._answered

    @property
    def deadline_s(self) -> float:
        """As in `TrackedConnection`."""
        return min(self._due_s, self._readable_due_s)

    def answer_ended(self) -> None:
        """As in `TrackedConnection`."""
        self._answered += 1
        if self.is_idle and self._framing.phase is not Phase.HEAD:
            self._due_s = self._loop.time() + HEAD_WITHIN_S  # the rest of a body is not buffered

    def expire(self) -> None:
        """As in `TrackedConnection`, with a 408 if a head is incomplete."""
        phase, now_s = self._framing.phase, self._loop.time()
        if self._refused or self._transport.is_closing() or self._readable_due_s <= now_s:
            self.abort()
        elif phase is not Phase.BETWEEN and self._reading.is_paused:
            self._due_s = now_s + BODY_WITHIN_S  # not the peer's fault: reading is paused
        elif phase is Phase.HEAD and self.is_idle:
            self._refuse("408 Request Timeout", _LATE)
        elif phase is Phase.BETWEEN:
            self._due_s = now_s + LINGER_S
            self._transport.close()
        else:
            self.abort()

    def pause_for_room(self) -> None:
        """As in `TrackedConnection`."""
        self._reading.pause_for_room()

    def resume_for_room(self) -> None:
        """As in `TrackedConnection`."""
        self._reading.resume_for_room()

    def abort(self) -> None:
        """As in `TrackedConnection`."""
        self._transport.abort()

    # Callbacks of asyncio

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection."""
        self._transport = transport
        self._reading = _Reading(transport)
        self._due_s = self._loop.time() + HEAD_WITHIN_S
        self.peer = peer_of(transport)
        self._connections.add(self)

    def get_buffer(self, _size_hint: int) -> memoryview:
        """Return the buffer to receive into."""
        self._buffer = self._connections.unfinished.buffer(self)
        return self._buffer

    def buffer_updated(self, size_bytes: int) -> None:
        """Pass on received bytes within the limits."""
        if self._refused:
            self._read_away(size_bytes)
            return
        data = bytes(self._buffer[:size_bytes])
        at = 0
        while at < len(data) and not self._refused and not self._transport.is_closing():
            piece = data[at : at + self._framing.room()]
            at += len(piece)
            self._take(piece)

    def eof_received(self) -> None:
        """Return None, so that the transport closes itself."""

    def pause_writing(self) -> None:
        """Pause responses, and start the timeout for reading them."""
        self._readable_due_s = self._loop.time() + READ_WITHIN_S
        if self._requests is not None:
            self._requests.pause_writing()

    def resume_writing(self) -> None:
        """Resume responses."""
        self._readable_due_s = math.inf
        if self._requests is not None:
            self._requests.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister the connection."""
        self._kept.clear()
        self._framing.end()
        self._connections.drop(self)
        if self._requests is not None:
            self._requests.connection_lost(exc)

    # Steps

    def _take(self, piece: bytes) -> None:
        phase, requests, was_idle = self._framing.phase, self._framing.requests, self.is_idle
        try:
            self._framing.feed(piece)
        except HeadTooLargeError:
            self._refuse("431 Request Header Fields Too Large", _TOO_LARGE)
            return
        if self._framing.requests - self._answered > _MOST_WAITING:
            self.abort()
            return
        begun = self._framing.requests - requests
        self._expect(phase, len(piece), has_begun=begun > 0)
        if begun == 1 and was_idle and self._framing.phase is Phase.BODY:
            may_begin = self._connections.unfinished.may_begin(self)
        else:
            may_begin = not self._kept or self._framing.phase is Phase.BETWEEN
        if may_begin:
            self._hand_on((*self._kept, piece))
        else:
            self._kept.append(piece)

    def _hand_on(self, pieces: Iterable[bytes]) -> None:
        self._kept = []
        if self._requests is None:
            self._requests = self._begin_requests()
            self._requests.connection_made(self._transport)
            # Reading is paused by uvicorn, or for lack of room.
            self._requests.flow = FlowControl(self._reading)  # type: ignore[arg-type]
        for piece in pieces:
            self._requests.data_received(piece)

    def _expect(self, before: Phase, size_bytes: int, *, has_begun: bool) -> None:
        """Set the deadline for the peer's next progress."""
        phase, now_s = self._framing.phase, self._loop.time()
        is_new = phase is not before or has_begun
        unfinished = self._connections.unfinished
        if has_begun or phase is Phase.BETWEEN:
            unfinished.ended(self, now_s)
        if phase is Phase.BETWEEN:
            # Now the application answers, unless it has answered before the body's end.
            self._due_s = now_s + HEAD_WITHIN_S if self.is_idle else math.inf
            return
        if phase is Phase.HEAD:
            self._due_s = now_s + HEAD_WITHIN_S if is_new else self._due_s
        else:
            since_s = now_s + BODY_WITHIN_S if is_new else self._due_s
            self._due_s = since_s + size_bytes / BODY_BYTES_PER_S
        # The rest of a body whose request is answered is not buffered.
        is_kept = is_new or phase is Phase.HEAD or not self.is_idle
        if is_kept and unfinished.count_received(self, size_bytes, now_s):
            self._connections.restart_wait(self)

    def _refuse(self, status: str, words: str) -> None:
        """Send an error response and close; discard further input, so that the peer can read it."""
        self._refused = True
        if not self.is_idle or self._transport.is_closing():
            self.abort()
            return
        self._due_s = self._loop.time() + LINGER_S
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(words)}\r\nConnection: close\r\n\r\n"
        )
        self._transport.write(f"{head}{words}".encode())
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def _read_away(self, size_bytes: int) -> None:
        self._read_away_bytes += size_bytes
        if self._read_away_bytes > _MOST_READ_AWAY_BYTES:
            self.abort()


class _Reading:
    """Whether a connection is read; paused by the application, or for lack of shared room."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.is_paused_by_application = False
        self._is_paused_for_room = False

    @property
    def is_paused(self) -> bool:
        """Whether reading is paused."""
        return self.is_paused_by_application or self._is_paused_for_room

    def pause_reading(self) -> None:
        """Pause for the application; called by uvicorn."""
        self._set(by_application=True, for_room=self._is_paused_for_room)

    def resume_reading(self) -> None:
        """Resume for the application; called by uvicorn."""
        self._set(by_application=False, for_room=self._is_paused_for_room)

    def pause_for_room(self) -> None:
        """Pause until there is room."""
        self._set(by_application=self.is_paused_by_application, for_room=True)

    def resume_for_room(self) -> None:
        """Resume because there is room."""
        self._set(by_application=self.is_paused_by_application, for_room=False)

    def _set(self, *, by_application: bool, for_room: bool) -> None:
        was_paused = self.is_paused
        self.is_paused_by_application, self._is_paused_for_room = by_application, for_room
        if self.is_paused == was_paused or self._transport.is_closing():
            return
        if self.is_paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
