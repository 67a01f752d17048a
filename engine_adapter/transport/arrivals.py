"""Connections that a thread of its own reads while an answer streams: each piece keeps its time.

The thread (`_arrivals.c`) needs no Python, and therefore reads in time. The head and the end of an
answer are asyncio's; between them asyncio's transport is paused, and what the thread has read is
fed to aiohttp's protocol as the transport would have fed it.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Self

import aiohttp

from engine_adapter.transport.stamped_socket import Exchange, StampedSocket

try:
    from engine_adapter.transport import _arrivals
except ImportError:  # no compiler when this was installed, or no Linux
    _arrivals = None  # type: ignore[assignment]  # it is asked for below

_MOST_UNREAD_BYTES = 1 << 16
"""Beyond twice as much aiohttp pauses its parser."""


class Arrivals:
    """One client's thread, seen from its event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = _arrivals.Reader()
        self._takeovers: dict[int, Takeover] = {}
        self._ready = self._reader.fileno()
        self._loop.add_reader(self._ready, self._wake)

    @classmethod
    def start(cls) -> Self | None:
        """Start a thread beside the running loop; `None` where that cannot have one.

        It may not be compiled; and uvloop reads past Python's sockets.
        """
        loop = asyncio.get_running_loop()
        if _arrivals is None or not isinstance(loop, asyncio.SelectorEventLoop):
            return None
        return cls()

    def take_over(self, response: aiohttp.ClientResponse, exchange: Exchange) -> "Takeover | None":
        """Read the rest of an answer; `None` where asyncio has to: under TLS, or at its end."""
        connection, sock = response.connection, exchange.socket
        if connection is None or sock is None or not sock.has_kernel_stamps:
            return None
        transport, protocol = connection.transport, connection.protocol
        if transport is None or protocol is None or transport.is_closing():
            return None
        if transport.get_extra_info("sslcontext") is not None:
            return None
        exchange.gather()
        length = response.content_length
        until_end = -1 if length is None else length - response.content.total_bytes
        key = self._reader.add(sock.fileno(), until_end)
        transport.pause_reading()
        takeover = Takeover(self, key, sock, exchange, (transport, protocol))
        self._takeovers[key] = takeover
        return takeover

    def take(self, key: int) -> tuple[Sequence[tuple[bytes, float]], int | None]:
        """Return a connection's pieces; behind them its error, or 0 at its end."""
        return self._reader.take(key)

    def remove(self, key: int) -> tuple[Sequence[tuple[bytes, float]], int | None]:
        """Return the same, of a connection that the thread reads no more from now on."""
        del self._takeovers[key]
        return self._reader.remove(key)

    def close(self) -> None:
        """Hand all connections back, and end the thread; safe to call twice."""
        for takeover in list(self._takeovers.values()):
            takeover.hand_back()
        if not self._loop.is_closed():
            self._loop.remove_reader(self._ready)
        self._reader.close()

    def _wake(self) -> None:
        for key in self._reader.ready():
            self._takeovers[key].wake()


class Takeover:
    """One answer's connection in the thread's hands."""

    def __init__(
        self,
        thread: Arrivals,
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
        self._waiter: asyncio.Future[None] | None = None
        self.is_over = False
        """Whether asyncio has the connection again, or closes it."""
        sock.before_close = self._abandon

    def gather(self) -> None:
        """Feed what has come; where that was the end, hand the connection back."""
        if self.is_over:
            return
        pieces, error = self._thread.take(self._key)
        self._feed(pieces)
        if error is not None or self._exchange.is_whole:
            self.hand_back()
        else:
            self._transport.pause_reading()  # aiohttp resumes it whenever a body is read from

    def hand_back(self) -> None:
        """Let asyncio read again, behind what the thread has read; safe to call twice.

        The end of a connection is there for asyncio to see, but an error is told once: the socket
        keeps it.
        """
        if self.is_over:
            return
        pieces, error = self._end()
        self._feed(pieces)
        self._sock.failure = OSError(error, os.strerror(error)) if error else None
        self._transport.resume_reading()

    async def wait(self, until_s: float) -> None:
        """Wait until a time of the loop's clock, or less where the thread asks for a look."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_at(until_s, self.wake)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def wake(self) -> None:
        """End the waiting."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _abandon(self) -> None:
        """Leave a connection that is being closed, before its file descriptor is another's."""
        if not self.is_over:
            self._end()

    def _end(self) -> tuple[Sequence[tuple[bytes, float]], int | None]:
        self.is_over = True
        self._sock.before_close = None
        self.wake()
        return self._thread.remove(self._key)

    def _feed(self, pieces: Sequence[tuple[bytes, float]]) -> None:
        sock, exchange, receive = self._sock, self._exchange, self._protocol.data_received
        for data, at_s in pieces:
            if self._transport.is_closing():  # aiohttp refused what came before
                break
            sock.stamp(at_s)
            receive(data)
            exchange.note()
            if exchange.unread_bytes > _MOST_UNREAD_BYTES:
                exchange.gather()
        exchange.gather()
