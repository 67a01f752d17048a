"""A request on its way and its answer, as seen by the socket that carries them."""

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
    """A connection in the hands of who reads it instead of asyncio."""

    is_over: bool

    def begin_body(self, response: aiohttp.ClientResponse) -> None:
        """Keep a stream's body until it is gathered."""

    def gather(self) -> None:
        """Feed what has come."""

    def hand_back(self) -> None:
        """Let asyncio read again."""

    async def wait(self, until_s: float) -> None:
        """Wait until there is something to look at, or a time of the loop's clock."""


class Reader(Protocol):
    """Reads connections instead of asyncio."""

    def take_over(
        self, connection: Connection, exchange: "Exchange", sock: StampedSocket
    ) -> Takeover | None:
        """Read a connection; `None` if asyncio has to."""

    def gaps(self) -> Sequence[Gap]:
        """Return when it was kept from reading."""


@dataclass(slots=True)
class Exchange:
    """One request on its way and its answer's body, told of by the socket that carries them."""

    sent_s: float | None = None
    """Reading of `time.perf_counter` when the request's first byte was handed to the kernel."""
    socket: StampedSocket | None = None
    reused: bool = False
    """Whether the connection had carried another request before."""
    arrivals: Reader | None = None
    """What is to read the answer; `None`: asyncio."""
    takeover: Takeover | None = None
    """While it does."""
    loop_gaps: LoopGaps | None = None
    """When asyncio was kept from reading."""
    _was_taken: bool = False
    _connection: Connection | None = None
    _content: aiohttp.StreamReader | None = None
    _noted: list[tuple[int, float]] = field(default_factory=list)
    """Bytes of the body that had come, and when the last of them did."""
    _noted_bytes: int = 0
    _pieces: list[Arrived] = field(default_factory=list)
    _gathered_bytes: int = 0

    @property
    def may_be_repeated(self) -> bool:
        """Whether nothing was sent, or only on a connection that its server may have left."""
        return self.socket is None or self.reused

    @property
    def is_whole(self) -> bool:
        """Whether the body has come to its end, or broken off."""
        content = self._content
        return content is None or content.is_eof() or content.exception() is not None

    @property
    def unread_bytes(self) -> int:
        """What came of the body since it was last gathered."""
        return self._noted_bytes - self._gathered_bytes

    def lateness_s(self, arrived: Arrived) -> float:
        """Return by how much stamps of a piece's events may be late because of its reader."""
        return lateness_s(arrived.data, arrived.at_s, self._gaps())

    def _gaps(self) -> Iterator[Gap]:
        """Yield when the reader was kept from reading; it is asked for the first, not before."""
        if self._was_taken and self.arrivals is not None:
            yield from self.arrivals.gaps()
        elif self.loop_gaps is not None:
            yield from self.loop_gaps.gaps

    def take(self, connection: Connection) -> None:
        """Have the answer read by `arrivals`, from when the request is sent: that may yet come."""
        self._connection = connection
        if self.socket is not None:
            self.send_on(self.socket)

    def send_on(self, sock: StampedSocket) -> None:
        """Note which socket sends the request and, last of all, when it begins to."""
        self.socket = sock
        if self._connection is not None and self.arrivals is not None and self.takeover is None:
            self.takeover = self.arrivals.take_over(self._connection, self, sock)
            self._was_taken = self.takeover is not None
            self._connection = None
        if self.sent_s is None:
            self.sent_s = time.perf_counter()

    def watch(self, content: aiohttp.StreamReader | None) -> None:
        """Note when the pieces of this body come, from now on; of `None`, nothing."""
        self._content = content

    def note(self) -> None:
        """Note when what has been read of the body came; before the socket reads more."""
        if self._content is not None and self._content.total_bytes > self._noted_bytes:
            self._noted_bytes = self._content.total_bytes
            received_s = self.socket.received_s if self.socket is not None else None
            self._noted.append((self._noted_bytes, received_s or time.perf_counter()))

    def gather(self) -> None:
        """Take what there is of the body: where it has broken off, nobody can."""
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
        """Return the pieces that were not yet returned."""
        self.gather()
        pieces, self._pieces = self._pieces, []
        return pieces
