"""Sockets that know when a request left and when bytes arrived.

On Linux the kernel stamps each arriving segment (`SO_TIMESTAMPING`), so that a stamp does not move
by the time for which this process was busy with other streams: with 256 streams that is
milliseconds. Elsewhere, and where the kernel gives no stamp, it is the time of the read.
"""

import contextlib
import socket
import struct
import sys
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

_SO_TIMESTAMPING = 37  # Linux, and absent from Python's socket module
_RX_SOFTWARE = 1 << 3
_SOFTWARE = 1 << 4
_TIMESPEC = struct.Struct("qq")
_ANCILLARY_BYTES = 128
_STALE_NS = 60 * 10**9
"""A stamp further back is taken for a step of the wall clock, not for an arrival."""


@dataclass(slots=True)
class Exchange:
    """One request on its way, told of by the socket that carries it."""

    sent_s: float | None = None
    """Reading of `time.perf_counter` when the request's first byte was handed to the kernel."""
    socket: "StampedSocket | None" = None

    def received_s(self) -> float:
        """Return when the latest bytes arrived."""
        if self.socket is None or self.socket.received_s is None:
            return time.perf_counter()
        return self.socket.received_s


current: ContextVar[Exchange | None] = ContextVar("current_exchange", default=None)
"""Set while a request is written: what a socket sends belongs to it."""


class StampedSocket(socket.socket):
    """A TCP socket that stamps what it sends and receives."""

    received_s: float | None = None
    _kernel_stamps = False

    def ask_for_stamps(self) -> None:
        """Ask the kernel to stamp what arrives; without effect where it cannot."""
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                self.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _RX_SOFTWARE | _SOFTWARE)
                self._kernel_stamps = True

    def send(self, data: Any, flags: int = 0) -> int:  # Any: a buffer
        """Send, and tell the request that is being written."""
        exchange = current.get()
        if exchange is not None:
            exchange.socket = self
            if exchange.sent_s is None:
                exchange.sent_s = time.perf_counter()
        return super().send(data, flags)

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """Receive, and stamp."""
        if not self._kernel_stamps:
            data = super().recv(bufsize, flags)
            self.received_s = time.perf_counter()
            return data
        data, ancillary, _, _ = self.recvmsg(bufsize, _ANCILLARY_BYTES, flags)
        self.received_s = _arrival_s(ancillary)
        return data

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:  # Any: a buffer
        """Receive into a buffer, as TLS does, and stamp."""
        if not self._kernel_stamps or nbytes:
            count = super().recv_into(buffer, nbytes, flags)
            self.received_s = time.perf_counter()
            return count
        count, ancillary, _, _ = self.recvmsg_into([buffer], _ANCILLARY_BYTES, flags)
        self.received_s = _arrival_s(ancillary)
        return count


def make(address: tuple[Any, ...]) -> socket.socket:  # Any: as `socket.getaddrinfo` gives it
    """Return the socket for an address of `getaddrinfo`."""
    family, kind, protocol, *_ = address
    made = StampedSocket(family=family, type=kind, proto=protocol)
    made.setblocking(False)  # noqa: FBT003  # the socket module's own
    made.ask_for_stamps()
    return made


def _arrival_s(ancillary: list[tuple[int, int, bytes]]) -> float:
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
    """Read the wall clock and the monotonic one together, again where a switch came between."""
    for _ in range(3):
        before_ns = time.perf_counter_ns()
        wall_ns = time.time_ns()
        after_ns = time.perf_counter_ns()
        if after_ns - before_ns < 5_000:
            break
    return wall_ns, (before_ns + after_ns) // 2
