"""Read streaming connections in a C thread, so that each piece keeps its own arrival time.

The thread (`_arrivals.c`) does not need the interpreter lock, so it reads in time. It owns a
connection from the sending of a request to the end of its answer. Meanwhile asyncio's transport is
paused, and the bytes read are fed to aiohttp's protocol as the transport would have done.
"""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Sequence
from http import HTTPStatus
from typing import Self

import aiohttp
from aiohttp.connector import Connection

from engine_adapter.transport.exchanges import Exchange
from engine_adapter.transport.reading_gaps import Gap
from engine_adapter.transport.stamped_socket import StampedSocket, current

try:
    from engine_adapter.transport import _arrivals
except ImportError:  # no compiler at installation, or not Linux
    _arrivals = None  # type: ignore[assignment]  # `start` checks it

_MOST_UNREAD_BYTES = 1 << 16
"""aiohttp pauses its parser at more than twice as much."""


class ReaderThread:
    """One client's reader thread, used from its event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = _arrivals.Reader()
        self._takeovers: dict[int, ThreadTakeover] = {}
        self._ready = self._reader.fileno()
        self._is_closed = False
        self._loop.add_reader(self._ready, self._wake)

    @classmethod
    def start(cls) -> Self | None:
        """Start a thread for the running loop; `None` if that is not possible.

        The C module may be missing, and uvloop bypasses Python's sockets.
        """
        loop = asyncio.get_running_loop()
        if _arrivals is None or not isinstance(loop, asyncio.SelectorEventLoop):
            return None
        return cls()

    def take_over(
        self, connection: Connection, exchange: Exchange, sock: StampedSocket
    ) -> "ThreadTakeover | None":
        """Take over a connection; `None` if asyncio must read it, as under TLS."""
        transport, protocol = connection.transport, connection.protocol
        if self._is_closed or not sock.has_kernel_stamps or transport is None or protocol is None:
            return None
        if transport.get_extra_info("sslcontext") is not None or transport.is_closing():
            return None
        key = self._reader.add(sock.fileno())
        transport.pause_reading()
        takeover = ThreadTakeover(self, key, sock, exchange, (transport, protocol))
        self._takeovers[key] = takeover
        return takeover

    def expect(self, key: int, until_end: int) -> None:
        """Wake for a connection only after `until_end` more bytes, not at each piece.

        If `until_end` is negative, wake at an apparent end of a chunked body.
        """
        self._reader.expect(key, until_end)

    def take(self, key: int) -> tuple[Sequence[tuple[bytes, float]], int | None]:
        """Return a connection's pieces, and its errno, 0 at its end, or `None` while open."""
        return self._reader.take(key)

    def remove(self, key: int) -> tuple[Sequence[tuple[bytes, float]], int | None]:
        """Stop reading a connection; return the same as `take`."""
        del self._takeovers[key]
        return self._reader.remove(key)

    def gaps(self) -> Sequence[Gap]:
        """Return the gaps in which the thread could not read."""
        return self._reader.gaps()

    def close(self) -> None:
        """Hand all connections back and stop the thread; safe to call twice."""
        self._is_closed = True
        for takeover in list(self._takeovers.values()):
            takeover.hand_back()
        if not self._loop.is_closed():
            self._loop.remove_reader(self._ready)
        self._reader.close()

    def _wake(self) -> None:
        for key in self._reader.ready():
            if key in self._takeovers:
                self._takeovers[key].wake()


class ThreadTakeover:
    """One request's connection while the thread reads it."""

    def __init__(
        self,
        thread: ReaderThread,
        key: int,
        sock: StampedSocket,
        exchange: Exchange,
        connection: tuple[asyncio.Transport, asyncio.Protocol],
    ) -> None:
        self._thread = thread
        self._key = key
        self._sock = sock
        self._exchange = exchange
        self._transport, self._protocol = connection
        self._loop = asyncio.get_running_loop()
        self._in_body = False
        self._will_feed_head = False
        self._pieces: deque[tuple[bytes, float]] = deque()
        """Taken from the thread and not fed to the protocol yet."""
        self._waiter: asyncio.Future[None] | None = None
        self.is_over = False
        """Whether asyncio reads the connection again or closes it."""
        sock.before_close = self._abandon

    def begin_body(self, response: aiohttp.ClientResponse) -> None:
        """After the head: feed the body only in `gather`."""
        self._in_body = True
        content, length = response.content, response.content_length
        self._exchange.watch(content)
        self._exchange.note()
        if self._exchange.is_whole:
            self.hand_back()
        elif not self.is_over:
            come = content.total_bytes + sum(len(data) for data, _ in self._pieces)
            self._thread.expect(self._key, -1 if length is None else max(0, length - come))

    def gather(self) -> None:
        """Feed the pieces received so far; at the end, hand the connection back."""
        if self.is_over:
            return
        error = self._take()
        self._feed()
        if error is not None or self._exchange.is_whole:
            self.hand_back()
        else:
            self._transport.pause_reading()  # aiohttp resumes it whenever the body is read

    def hand_back(self) -> None:
        """Let asyncio read on after the bytes that the thread has read; safe to call twice.

        asyncio sees the end of a connection itself, but the kernel reports an error only once, so
        the socket keeps it.
        """
        if self.is_over:
            return
        error = self._end()
        self._feed()
        self._sock.failure = OSError(error, os.strerror(error)) if error else None
        self._transport.resume_reading()

    async def wait(self, until_s: float) -> None:
        """Wait until `until_s` by the loop's clock, or until the thread wakes us."""
        self._waiter = self._loop.create_future()
        timer = self._loop.call_at(until_s, self.wake)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def wake(self) -> None:
        """End `wait`, or feed the next piece of the head."""
        if not self._in_body:
            if not self._will_feed_head:
                self._feed_head()
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _feed_head(self) -> None:
        """Feed one piece; if it ends the head, the next one is stamped as part of the body.

        The request's task, which runs before the next call, finds out whether the head has ended.
        """
        self._will_feed_head = False
        if self._in_body or self.is_over:
            return
        error = self._take() if not self._pieces else None
        if self._pieces:
            self._feed(most=1)
            self._will_feed_head = True
            self._loop.call_soon(self._feed_head)
        elif error is not None:
            self.hand_back()

    def _abandon(self) -> None:
        """Release a connection that is being closed, before its file descriptor is reused."""
        if not self.is_over:
            self._end()

    def _take(self) -> int | None:
        """Take the thread's pieces; return the connection's errno, 0 at its end, else `None`."""
        pieces, error = self._thread.take(self._key)
        self._pieces.extend(pieces)
        return error

    def _end(self) -> int | None:
        self.is_over = True
        self._exchange.takeover = None
        self._sock.before_close = None
        pieces, error = self._thread.remove(self._key)
        self._pieces.extend(pieces)
        self.wake()
        return error

    def _feed(self, most: int = sys.maxsize) -> None:
        sock, exchange, receive = self._sock, self._exchange, self._protocol.data_received
        for _ in range(min(most, len(self._pieces))):
            data, at_s = self._pieces.popleft()
            if self._transport.is_closing():  # aiohttp rejected earlier bytes
                break
            sock.stamp(at_s)
            receive(data)
            exchange.note()
            if exchange.unread_bytes > _MOST_UNREAD_BYTES:
                exchange.gather()
        exchange.gather()


class ThreadReadResponse(aiohttp.ClientResponse):
    """A response whose connection the thread reads, if its exchange has a reader."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Wait for the head as aiohttp does; hand the connection back unless it is a stream."""
        exchange = current.get()
        if not isinstance(exchange, Exchange) or exchange.arrivals is None:
            return await super().start(connection)
        exchange.take(connection)
        await super().start(connection)
        takeover = exchange.takeover
        if takeover is not None and is_stream(self):
            takeover.begin_body(self)
        elif takeover is not None:
            takeover.hand_back()
        return self


def is_stream(response: aiohttp.ClientResponse) -> bool:
    """Return whether a response is a successful stream of server-sent events."""
    content_type = response.headers.get("content-type", "")
    is_success = HTTPStatus(200) <= response.status < HTTPStatus(300)
    return is_success and content_type.startswith("text/event-stream")
