"""A connection with bounds, in front of uvicorn's own protocol, which is as it is shipped.

What a peer may send without being asked is bounded here, and for how long it may take: a head and
its headers, a body, the reading of an answer.
"""

import asyncio
import math
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from collector.serving.connections import Connections, Held, peer_of
from collector.serving.request_framing import (
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    HeadTooLargeError,
    Phase,
    RequestFraming,
)

HEAD_WITHIN_S: Final = 10.0
"""For a first byte, and from there for a whole head."""
BODY_WITHIN_S: Final = 30.0
"""For a body, and a second more for each `_BODY_BYTES_PER_S` that have come."""
_BODY_BYTES_PER_S: Final = 16 * 1024
_READ_WITHIN_S: Final = 60.0
"""For a peer to take some of an answer."""
_LINGER_S: Final = 2.0
"""For a refused peer to read why."""
_MOST_READ_AWAY_BYTES: Final = 1024 * 1024
"""Of a refused peer, which would not read the answer if the connection were reset."""
_MOST_WAITING: Final = 32
"""Requests that may stand behind one another on one connection."""
_TOO_LARGE = (
    f"the request's head is beyond {MAX_HEAD_BYTES} bytes or {MAX_HEADERS} headers; send less"
)
_LATE = f"the request's head was not complete after {HEAD_WITHIN_S:g} s; send it at once"


class BoundedConnection(Held, asyncio.BufferedProtocol):
    """Counts what comes, and hands it on."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        """Any: uvicorn's options of a connection."""
        super().__init__()
        self._connections = connections
        self._begin_requests = partial(HttpToolsProtocol, **options)
        self._requests: HttpToolsProtocol | None = None
        """None before the peer's first byte: most that flood a server send none."""
        self._framing = RequestFraming()
        self._answered = 0
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._reading: _Reading
        self._buffer: memoryview
        self._kept: list[bytes] = []
        """Of a request that the application begins once it is complete."""
        self._refused = False
        self._read_away_bytes = 0
        self._due_s = math.inf
        self._readable_due_s = math.inf

    # What the server's other connections see

    @property
    def waits_for_peer(self) -> bool:
        """As in `Held`."""
        if self._framing.phase is Phase.BODY:
            is_behind_another = self._framing.requests - self._answered > 1
            return not (is_behind_another or self._reading.is_paused_by_application)
        return self.is_idle

    @property
    def is_idle(self) -> bool:
        """As in `Held`."""
        return self._framing.requests == self._answered

    @property
    def deadline_s(self) -> float:
        """As in `Held`."""
        return min(self._due_s, self._readable_due_s)

    def answer_ended(self) -> None:
        """As in `Held`."""
        self._answered += 1
        if self.is_idle and self._framing.phase is not Phase.HEAD:
            self._due_s = self._loop.time() + HEAD_WITHIN_S  # of a body, nobody keeps the rest

    def expire(self) -> None:
        """As in `Held`: with an answer if a head is half there."""
        phase, now_s = self._framing.phase, self._loop.time()
        if self._refused or self._transport.is_closing() or self._readable_due_s <= now_s:
            self.abort()
        elif phase is not Phase.BETWEEN and self._reading.is_paused:
            self._due_s = now_s + BODY_WITHIN_S  # it is we who do not read
        elif phase is Phase.HEAD and self.is_idle:
            self._refuse("408 Request Timeout", _LATE)
        elif phase is Phase.BETWEEN:
            self._due_s = now_s + _LINGER_S
            self._transport.close()
        else:
            self.abort()

    def pause_for_room(self) -> None:
        """As in `Held`."""
        self._reading.pause_for_room()

    def resume_for_room(self) -> None:
        """As in `Held`."""
        self._reading.resume_for_room()

    def abort(self) -> None:
        """As in `Held`."""
        self._transport.abort()

    # What asyncio says

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        self._transport = transport
        self._reading = _Reading(transport)
        self._due_s = self._loop.time() + HEAD_WITHIN_S
        self.peer = peer_of(transport)
        self._connections.add(self)

    def get_buffer(self, _size_hint: int) -> memoryview:
        """Give room to read to."""
        self._buffer = self._connections.unfinished.buffer(self)
        return self._buffer

    def buffer_updated(self, size_bytes: int) -> None:
        """Hand on what is within bounds."""
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
        """Have the transport close itself."""

    def pause_writing(self) -> None:
        """Make answers wait, for a while."""
        self._readable_due_s = self._loop.time() + _READ_WITHIN_S
        if self._requests is not None:
            self._requests.pause_writing()

    def resume_writing(self) -> None:
        """Let answers go on."""
        self._readable_due_s = math.inf
        if self._requests is not None:
            self._requests.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
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
            # It reads when it wants to, and when there is room.
            self._requests.flow = FlowControl(self._reading)  # type: ignore[arg-type]
        for piece in pieces:
            self._requests.data_received(piece)

    def _expect(self, before: Phase, size_bytes: int, *, has_begun: bool) -> None:
        """Set the time by which what comes next is to be there."""
        phase, now_s = self._framing.phase, self._loop.time()
        is_new = phase is not before or has_begun
        unfinished = self._connections.unfinished
        if has_begun or phase is Phase.BETWEEN:
            unfinished.ended(self, now_s)
        if phase is Phase.BETWEEN:
            # The application's turn, unless it has answered before the body's end.
            self._due_s = now_s + HEAD_WITHIN_S if self.is_idle else math.inf
            return
        if phase is Phase.HEAD:
            self._due_s = now_s + HEAD_WITHIN_S if is_new else self._due_s
        else:
            since_s = now_s + BODY_WITHIN_S if is_new else self._due_s
            self._due_s = since_s + size_bytes / _BODY_BYTES_PER_S
        # Of a body whose request is answered nobody keeps the rest.
        is_kept = is_new or phase is Phase.HEAD or not self.is_idle
        if is_kept and unfinished.came(self, size_bytes, now_s):
            self._connections.is_waited_for_anew(self)

    def _refuse(self, status: str, words: str) -> None:
        """Answer from here and end; what the peer still sends is read away, so that it reads it."""
        self._refused = True
        if not self.is_idle or self._transport.is_closing():
            self.abort()
            return
        self._due_s = self._loop.time() + _LINGER_S
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
    """Whether a connection is read: for the application, and for the room of all."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.is_paused_by_application = False
        self._is_paused_for_room = False

    @property
    def is_paused(self) -> bool:
        """Whether nothing is read."""
        return self.is_paused_by_application or self._is_paused_for_room

    def pause_reading(self) -> None:
        """Wait for the application; said by uvicorn."""
        self._set(by_application=True, for_room=self._is_paused_for_room)

    def resume_reading(self) -> None:
        """Go on; said by uvicorn."""
        self._set(by_application=False, for_room=self._is_paused_for_room)

    def pause_for_room(self) -> None:
        """Wait for room."""
        self._set(by_application=self.is_paused_by_application, for_room=True)

    def resume_for_room(self) -> None:
        """Go on."""
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
