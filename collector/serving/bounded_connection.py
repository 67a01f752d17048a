"""A connection with bounds, in front of uvicorn's own protocol, which is as it is shipped.

What a peer may send without being asked is bounded here, and for how long it may take: a head and
its headers, a body, the reading of an answer.
"""

import asyncio
import math
from typing import Any, Final

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


class BoundedConnection(Held, asyncio.Protocol):
    """Counts what comes, and hands it on."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        """Any: uvicorn's options of a connection."""
        super().__init__()
        self._connections = connections
        self._requests = HttpToolsProtocol(**options)
        self._framing = RequestFraming()
        self._answered = 0
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._refused = False
        self._read_away_bytes = 0
        self._due_s = math.inf
        self._readable_due_s = math.inf

    # What the server's other connections see

    @property
    def waits_for_peer(self) -> bool:
        """As in `Held`."""
        if self._framing.phase is Phase.BETWEEN:
            return self.is_idle
        return self._transport.is_reading()

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
        if self.is_idle and self._framing.phase is Phase.BETWEEN:
            self._due_s = self._loop.time() + HEAD_WITHIN_S

    def expire(self) -> None:
        """As in `Held`: with an answer if a head is half there."""
        phase, now_s = self._framing.phase, self._loop.time()
        if self._refused or self._transport.is_closing() or self._readable_due_s <= now_s:
            self.abort()
        elif phase is Phase.BODY and not self._transport.is_reading():
            self._due_s = now_s + BODY_WITHIN_S  # it is we who do not read
        elif phase is Phase.HEAD and self.is_idle:
            self._refuse("408 Request Timeout", _LATE)
        elif phase is Phase.BETWEEN:
            self._due_s = now_s + _LINGER_S
            self._transport.close()
        else:
            self.abort()

    def abort(self) -> None:
        """As in `Held`."""
        self._transport.abort()

    # What asyncio says

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        self._transport = transport
        self._due_s = self._loop.time() + HEAD_WITHIN_S
        self.peer = peer_of(transport)
        self._requests.connection_made(transport)
        if not self._connections.admit(self):
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Hand on what is within bounds."""
        if self._refused:
            self._read_away(len(data))
            return
        self._connections.heard(self)
        at = 0
        while at < len(data) and not self._refused and not self._transport.is_closing():
            piece = data[at : at + self._framing.room()]
            at += len(piece)
            self._take(piece)

    def eof_received(self) -> None:
        """Have the transport close itself."""
        self._requests.eof_received()

    def pause_writing(self) -> None:
        """Make answers wait, for a while."""
        self._readable_due_s = self._loop.time() + _READ_WITHIN_S
        self._requests.pause_writing()

    def resume_writing(self) -> None:
        """Let answers go on."""
        self._readable_due_s = math.inf
        self._requests.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._connections.drop(self)
        self._requests.connection_lost(exc)

    # Steps

    def _take(self, piece: bytes) -> None:
        phase, requests = self._framing.phase, self._framing.requests
        try:
            self._framing.feed(piece)
        except HeadTooLargeError:
            self._refuse("431 Request Header Fields Too Large", _TOO_LARGE)
            return
        if self._framing.requests - self._answered > _MOST_WAITING:
            self.abort()
            return
        self._expect(phase, len(piece), has_begun=self._framing.requests > requests)
        self._requests.data_received(piece)

    def _expect(self, before: Phase, size_bytes: int, *, has_begun: bool) -> None:
        """Set the time by which what comes next is to be there."""
        phase, now_s = self._framing.phase, self._loop.time()
        is_new = phase is not before or has_begun
        if is_new and self.body_bytes:
            self._connections.body_ended(self)
        if phase is Phase.BETWEEN:
            # The application's turn, unless it has answered before the body's end.
            self._due_s = now_s + HEAD_WITHIN_S if self.is_idle else math.inf
        elif phase is Phase.HEAD:
            self._due_s = now_s + HEAD_WITHIN_S if is_new else self._due_s
        else:
            since_s = now_s + BODY_WITHIN_S if is_new else self._due_s
            self._due_s = since_s + size_bytes / _BODY_BYTES_PER_S
            if is_new or not self.is_idle:  # else it is answered, and nobody keeps the rest
                self._connections.body_came(self, size_bytes)

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
