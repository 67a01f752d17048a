"""A request and its answer, as observed at their socket."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import aiohttp
from aiohttp.connector import Connection

from engine_adapter.transport.reading_gaps import Gap, LoopGaps, lateness_s
from engine_adapter.transport.stamped_socket import StampedSocket


class Arrived(NamedTuple):
    """Bytes of a body that arrived together."""

    data: bytes
    at_s: float
    """Reading of `time.perf_counter` when they reached this machine."""


class Takeover(Protocol):
    """A connection that a reader has taken over from asyncio."""

    is_over: bool

    def begin_body(self, response: aiohttp.ClientResponse) -> None:
        """Keep a stream's body until it is gathered."""

    def gather(self) -> None:
        """Feed the bytes received so far to the protocol."""

    def hand_back(self) -> None:
        """Let asyncio read again."""

    async def wait(self, until_s: float) -> None:
        """Wait for the reader's wake-up, at most until `until_s` by the loop's clock."""


class ConnectionReader(Protocol):
    """Reads connections instead of asyncio."""

    def take_over(
        self, connection: Connection, exchange: "Exchange", sock: StampedSocket
    ) -> Takeover | None:
        """Take over a connection; `None` if asyncio must read it."""

    def gaps(self) -> Sequence[Gap]:
        """Return the gaps in which it could not read."""


@dataclass(slots=True)
class Exchange:
    """One request and its answer's body; their socket reports sends and receives to it."""

    sent_s: float | None = None
    """Reading of `time.perf_counter` when the request's first byte was handed to the kernel."""
    socket: StampedSocket | None = None
    reused: bool = False
    """Whether the connection had carried another request before."""
    arrivals: ConnectionReader | None = None
    """The reader of the answer; `None`: asyncio."""
    takeover: Takeover | None = None
    """Set while the reader has the connection."""
    loop_gaps: LoopGaps | None = None
    """The gaps in which asyncio could not read."""
    _was_taken: bool = False
    _connection: Connection | None = None
    _content: aiohttp.StreamReader | None = None
    _noted: list[tuple[int, float]] = field(default_factory=list)
    """Total bytes of the body received, each total with the time of its last byte."""
    _noted_bytes: int = 0
    _pieces: list[Arrived] = field(default_factory=list)
    _gathered_bytes: int = 0

    @property
    def may_be_repeated(self) -> bool:
        """Whether nothing was sent, or only on a reused connection, which may have been closed."""
        return self.socket is None or self.reused

    @property
    def is_whole(self) -> bool:
        """Whether the body has ended or failed."""
        content = self._content
        return content is None or content.is_eof() or content.exception() is not None

    @property
    def unread_bytes(self) -> int:
        """Bytes of the body received since the last `gather`."""
        return self._noted_bytes - self._gathered_bytes

    def lateness_s(self, arrived: Arrived) -> float:
        """Return how late a piece's stamps may be because its reader could not read in time."""
        return lateness_s(arrived.data, arrived.at_s, self._gaps())

    def _gaps(self) -> Iterator[Gap]:
        """Yield the reader's gaps, fetched only when iterated."""
        if self._was_taken and self.arrivals is not None:
            yield from self.arrivals.gaps()
        elif self.loop_gaps is not None:
            yield from self.loop_gaps.gaps

    def take(self, connection: Connection) -> None:
        """Let `arrivals` read the answer, from the time the request is sent, now or later."""
        self._connection = connection
        if self.socket is not None:
            self.send_on(self.socket)

    def send_on(self, sock: StampedSocket) -> None:
        """Note the socket that sends the request and then the time of sending."""
        self.socket = sock
        if self._connection is not None and self.arrivals is not None and self.takeover is None:
            self.takeover = self.arrivals.take_over(self._connection, self, sock)
            self._was_taken = self.takeover is not None
            self._connection = None
        if self.sent_s is None:
            self.sent_s = time.perf_counter()

    def watch(self, content: aiohttp.StreamReader | None) -> None:
        """Stamp the pieces of this body from now on; `None` stops."""
        self._content = content

    def note(self) -> None:
        """Note the arrival time of the bytes read so far; call before the socket reads more."""
        if self._content is not None and self._content.total_bytes > self._noted_bytes:
            self._noted_bytes = self._content.total_bytes
            received_s = self.socket.received_s if self.socket is not None else None
            self._noted.append((self._noted_bytes, received_s or time.perf_counter()))

    def gather(self) -> None:
        """Take the received bytes of the body as stamped pieces; not possible once it failed."""
        self.note()
        if self._content is None or self._content.exception() is not None:
            return
        data, begin = self._content.read_nowait(), self._gathered_bytes
        for noted_bytes, at_s in self._noted:
            piece = data[self._gathered_bytes - begin : noted_bytes - begin]
            self._gathered_bytes = noted_bytes
            self._pieces.append(Arrived(piece, at_s))
        self._noted.clear()

    def gathered(self) -> list[Arrived]:
        """Gather, and return the pieces not returned yet."""
        self.gather()
        pieces, self._pieces = self._pieces, []
        return pieces
