"""Sockets that record when a request was sent and when bytes arrived.

On Linux the kernel stamps each arriving segment (`SO_TIMESTAMPING`), so that a stamp is not late by
the time this process spends on other streams: milliseconds with 256 streams. Elsewhere, or without
a kernel stamp, the time of the read is used.
"""

import contextlib
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol

_SO_TIMESTAMPING = 37  # Linux, and absent from Python's socket module
_RX_SOFTWARE = 1 << 3
_SOFTWARE = 1 << 4
_TIMESPEC = struct.Struct("qq")
_ANCILLARY_BYTES = 128
_STALE_NS = 60 * 10**9
"""An older stamp means that the wall clock was stepped; it is ignored."""
_MOST_RECEIVED_BYTES = 1 << 14
"""Per read: asyncio asks for a quarter of a megabyte, whose allocation takes 25 µs."""

_Ancillary = list[tuple[int, int, bytes]]


class Carried(Protocol):
    """A request on a socket, and its answer."""

    reused: bool

    def send_on(self, sock: "StampedSocket") -> None:
        """Note the socket that sends the request."""

    def note(self) -> None:
        """Note the arrival time of the bytes read so far."""

    def gather(self) -> None:
        """Take the bytes read so far."""


current: ContextVar[Carried | None] = ContextVar("current_exchange", default=None)
"""The request being written; the socket that sends meanwhile belongs to it."""


class StampedSocket(socket.socket):
    """A TCP socket that stamps what it sends and receives."""

    received_s: float | None = None
    """When the latest bytes arrived."""
    has_kernel_stamps = False
    """Whether the kernel stamps arrivals; else stamps are times of reading."""
    before_close: Callable[[], None] | None = None
    """Called before the file descriptor is closed."""
    failure: OSError | None = None
    """Raised by the next read: the reader thread got this error, and the kernel reports it once."""
    _exchange: Carried | None = None

    def ask_for_stamps(self) -> None:
        """Ask the kernel to stamp arrivals; no effect if it does not support that."""
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                self.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _RX_SOFTWARE | _SOFTWARE)
                self.has_kernel_stamps = True

    def close(self) -> None:
        """Close after calling `before_close`."""
        if self.before_close is not None:
            self.before_close()
        super().close()

    def stamp(self, at_s: float) -> None:
        """Note when bytes arrived; the second read of one segment must not seem earlier."""
        self.received_s = max(at_s, self.received_s or 0.0)

    def send(self, data: Any, flags: int = 0) -> int:  # Any: a buffer
        """Send, and note it on the request being written."""
        self._note_send()
        return super().send(data, flags)

    def sendmsg(self, buffers: Any, *given: Any) -> int:  # Any: as the socket module has it
        """Send several buffers, as asyncio does since Python 3.12, and note it on the request."""
        self._note_send()
        return super().sendmsg(buffers, *given)

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """Receive and stamp."""
        ancillary: _Ancillary = []
        self._note()
        try:
            self._raise_failure()
            if self.has_kernel_stamps:
                bufsize = min(bufsize, _MOST_RECEIVED_BYTES)
                data, ancillary, _, _ = self.recvmsg(bufsize, _ANCILLARY_BYTES, flags)
            else:
                data = super().recv(bufsize, flags)
        except OSError:
            self._gather()
            raise
        self.stamp(_arrival_s(ancillary))
        if not data:
            self._gather()
        return data

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:  # Any: a buffer
        """Receive into a buffer, as TLS does, and stamp."""
        ancillary: _Ancillary = []
        self._note()
        try:
            self._raise_failure()
            if self.has_kernel_stamps and not nbytes:
                count, ancillary, _, _ = self.recvmsg_into([buffer], _ANCILLARY_BYTES, flags)
            else:
                count = super().recv_into(buffer, nbytes, flags)
        except OSError:
            self._gather()
            raise
        self.stamp(_arrival_s(ancillary))
        if not count:
            self._gather()
        return count

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _note(self) -> None:
        if self._exchange is not None:
            self._exchange.note()

    def _gather(self) -> None:
        """Take the bytes before the connection's end: afterwards they cannot be read any more."""
        if self._exchange is not None:
            self._exchange.gather()

    def _note_send(self) -> None:
        exchange = current.get()
        if exchange is not None:
            exchange.reused |= self._exchange is not None and self._exchange is not exchange
            self._exchange = exchange
            exchange.send_on(self)


def make(address: tuple[Any, ...]) -> socket.socket:  # Any: as `socket.getaddrinfo` gives it
    """Return a non-blocking socket for an address of `getaddrinfo`."""
    family, kind, protocol, *_ = address
    made = StampedSocket(family=family, type=kind, proto=protocol)
    made.setblocking(False)  # noqa: FBT003  # the socket module's own
    made.ask_for_stamps()
    return made


def _arrival_s(ancillary: _Ancillary) -> float:
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPING and len(data) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            stamp_ns: int = seconds * 10**9 + nanoseconds
            wall_ns, clock_ns = _clocks()
            age_ns = wall_ns - stamp_ns
            if seconds and 0 <= age_ns < _STALE_NS:
                return (clock_ns - age_ns) / 1e9
    return time.perf_counter()


def _clocks() -> tuple[int, int]:
    """Read the wall and the monotonic clock together, in ns; retry if interrupted in between."""
    for _ in range(3):
        before_ns = time.perf_counter_ns()
        wall_ns = time.time_ns()
        after_ns = time.perf_counter_ns()
        if after_ns - before_ns < 5_000:
            break
    return wall_ns, (before_ns + after_ns) // 2
