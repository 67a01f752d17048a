"""Limits on the gRPC server's connections, which the gRPC library does not provide.

The connections are found among this process's open files, and closed there. The operating system
reports the bytes received on each; a call whose message is incomplete may hold all of them.
"""

import ctypes
import gc
import os
import socket
import stat
import struct
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Final
from urllib.parse import unquote

from listening.open_connections import OpenConnections

_FILES: Final = "/dev/fd"
_CALL_WITHIN_S: Final = 30.0
"""Timeout for a connection without a call; the library closes well-behaved ones before."""
_ROOM_BYTES: Final = 32 * 2**20
"""Room for incomplete messages; beyond it, slow connections are closed."""
_MOST_BYTES: Final = 3 * _ROOM_BYTES
"""Beyond it, the connections with the most recent progress are closed too."""
_PACE_BYTES: Final = 128 * 1024
_PACE_WITHIN_S: Final = 1.0
_HEAD_BYTES: Final = 256 * 1024
"""Most bytes received without a waiting call: heads, and beginnings of messages."""
_CALL_BYTES: Final = 512
"""Bytes of a call besides its message."""
_MOST_FRUITLESS: Final = 200
_FRUITLESS_WITHIN_S: Final = 5.0
"""Period for `_MOST_FRUITLESS` calls without a message from one address."""
_RELEASE_EVERY_S: Final = 0.2
_RECEIVED: Final = struct.Struct("128xQ")
"""`tcpi_bytes_received` of Linux's `struct tcp_info`."""

_ADDRESS_BYTES: Final = 16
_libc: Final = ctypes.CDLL(None) if sys.platform == "linux" else None

Peer = tuple[str, int]


class _Accepted:
    """One accepted connection."""

    def __init__(self, peer: Peer, now_s: float) -> None:
        self.peer = peer
        self.file = -1
        """Its file descriptor; -1 before it is found."""
        self.calls = self.waiting = 0
        """Unanswered calls, and among them those with an incomplete message."""
        self.quiet_s = self.paced_s = now_s
        """When its last call ended, and when it last had sufficient progress."""
        self.received_bytes = self.paced_bytes = 0
        self.done_bytes = 0
        """Bytes received before the incomplete messages."""
        self.settles = False
        """Whether all bytes up to the next measurement are those of calls whose wait ended."""

    @property
    def address(self) -> str:
        """As in `OpenConnection`."""
        return self.peer[0]

    @property
    def waits_for_peer(self) -> bool:
        """As in `OpenConnection`."""
        return self.calls == self.waiting

    @property
    def held_bytes(self) -> int:
        """Bytes of incomplete heads and messages that it may hold."""
        return max(0, self.received_bytes - self.done_bytes)

    def measure(self, now_s: float) -> None:
        """Read the bytes received from the operating system."""
        with suppress(OSError, AttributeError, struct.error), _at(self.file) as found:
            tcp_info = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size)
            (self.received_bytes,) = _RECEIVED.unpack(tcp_info)
        if self.received_bytes - self.paced_bytes >= _PACE_BYTES or not self.waiting:
            self.paced_s, self.paced_bytes = now_s, self.received_bytes
        if not self.waiting:  # messages may be longer than the bytes received: decompressed
            done_bytes = self.received_bytes if self.settles else self.done_bytes
            self.done_bytes = min(done_bytes, self.received_bytes)
        self.settles = False

    def is_beyond(self, now_s: float) -> bool:
        """Return whether it had no call for too long, or sends data that is no call."""
        is_late = not self.calls and now_s - self.quiet_s > _CALL_WITHIN_S
        return is_late or (not self.waiting and self.held_bytes > _HEAD_BYTES)

    def wait_ended(self, size_bytes: int | None) -> None:
        """Record that a call's wait ended, with a message of this size or without one."""
        self.waiting = max(0, self.waiting - 1)
        self.done_bytes += _CALL_BYTES + (size_bytes or 0)
        if not self.waiting:
            self.done_bytes = max(self.done_bytes, self.received_bytes)
            self.settles = True  # a message that is refused has come since the last measurement

    def abort(self) -> None:
        """As in `OpenConnection`."""
        with suppress(OSError), _at(self.file) as found:
            if _peer_of(found) == self.peer:
                _disconnect(found)


class GrpcConnections:
    """The connections of one gRPC server; thread-safe."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._open: OpenConnections[_Accepted] = OpenConnections(most, most_per_address)
        self._lock = threading.Lock()
        self._known: dict[tuple[int, int], Peer | None] = {}
        """Peers of open sockets by descriptor and inode; None if they are not this server's."""
        self._by_peer: dict[Peer, _Accepted] = {}
        self._fruitless: Counter[str] = Counter()
        """Calls without a message, by address."""
        self._fruitless_s = 0.0
        """When their counting period began."""
        self._ended = False
        """Whether connections were closed since memory was last released."""
        self._released_s = 0.0

    def call_began(self, peer: str, now_s: float) -> None:
        """Record that a call waits for its message."""
        key = _read_peer(peer)
        with self._lock:
            found = self._by_peer.setdefault(key, _Accepted(key, now_s))
            if not found.waiting:
                found.done_bytes = max(found.done_bytes, found.received_bytes)
            found.calls += 1
            found.waiting += 1

    def wait_ended(self, peer: str, size_bytes: int | None) -> None:
        """Record that a call's wait ended, with a message of this size or without one."""
        with self._lock:
            if found := self._by_peer.get(_read_peer(peer)):
                found.wait_ended(size_bytes)
                if size_bytes is None:
                    self._fruitless[found.address] += 1
                    if self._fruitless[found.address] > _MOST_FRUITLESS:
                        found.abort()

    def call_ended(self, peer: str, now_s: float) -> None:
        """Record that a call is answered."""
        with self._lock:
            if found := self._by_peer.get(_read_peer(peer)):
                found.calls = max(0, found.calls - 1)
                found.quiet_s = now_s
                if found.file < 0 and not found.calls:
                    del self._by_peer[found.peer]

    def sweep(self, port: int, now_s: float) -> None:
        """Close connections that are too many, hold too much, or had no call for too long."""
        with self._lock:
            self._find(port, now_s)
            if now_s - self._fruitless_s > _FRUITLESS_WITHIN_S:
                self._fruitless_s = now_s
                self._fruitless.clear()
            accepted = list(self._open)
            for one in accepted:
                one.measure(now_s)
            beyond = [one for one in accepted if one.is_beyond(now_s)]
            beyond += _too_much([one for one in accepted if one.waiting], now_s)
        for one in beyond:
            one.abort()
        self._release_memory(now_s, ended=bool(beyond))

    def _release_memory(self, now_s: float, *, ended: bool) -> None:
        """Return the memory of closed connections to the operating system.

        gRPC's calls are Python objects in reference cycles, and the C library keeps freed memory.
        """
        self._ended |= ended
        if self._ended and now_s - self._released_s > _RELEASE_EVERY_S:
            self._ended, self._released_s = ended, now_s
            gc.collect(1)
            if _libc is not None and hasattr(_libc, "malloc_trim"):
                _libc.malloc_trim(0)

    def _find(self, port: int, now_s: float) -> None:
        """Register new connections, and remove closed ones."""
        known: dict[tuple[int, int], Peer | None] = {}
        for file, inode in _sockets():
            peer = self._known.get((file, inode))
            if (file, inode) not in self._known:
                peer = _accepted_at(file, port)
            known[file, inode] = peer
            if peer is not None:
                found = self._by_peer.setdefault(peer, _Accepted(peer, now_s))
                if found.file < 0:
                    self._open.add(found)
                found.file = file
        self._known = known
        for peer in self._by_peer.keys() - known.values():
            if self._by_peer[peer].file >= 0:
                self._open.discard(self._by_peer.pop(peer))


def _too_much(holding: list[_Accepted], now_s: float) -> list[_Accepted]:
    """Return the connections to close, because all together hold too much."""
    held_bytes = sum(one.held_bytes for one in holding)
    holding.sort(key=lambda one: one.paced_s)
    gone: list[_Accepted] = []
    while held_bytes > _ROOM_BYTES and len(holding) > 1:
        is_slow = now_s - holding[0].paced_s > _PACE_WITHIN_S
        if not is_slow and held_bytes <= _MOST_BYTES:
            break
        gone.append(holding.pop(0 if is_slow else -1))
        held_bytes -= gone[-1].held_bytes
    return gone


def _sockets() -> Iterator[tuple[int, int]]:
    for name in os.listdir(_FILES):  # noqa: PTH208  # a Path for each takes longer than the rest
        with suppress(OSError):
            found = os.fstat(int(name))
            if stat.S_ISSOCK(found.st_mode):
                yield int(name), found.st_ino


def _at(file: int) -> socket.socket:
    """Return a duplicate of the library's socket; the caller must close it."""
    copied = os.dup(file)
    try:
        return socket.socket(fileno=copied)
    except OSError:
        os.close(copied)
        raise


def _disconnect(found: socket.socket) -> None:
    """Close a connection and discard its input, which the library would read after a shutdown."""
    unspecified = bytes(_ADDRESS_BYTES)
    if _libc is None or _libc.connect(found.fileno(), unspecified, _ADDRESS_BYTES):
        found.shutdown(socket.SHUT_RDWR)


def _accepted_at(file: int, port: int) -> Peer | None:
    with suppress(OSError), _at(file) as found:
        if found.family in (socket.AF_INET, socket.AF_INET6) and found.getsockname()[1] == port:
            return _peer_of(found)
    return None


def _peer_of(found: socket.socket) -> Peer:
    host, port = found.getpeername()[:2]
    return str(host).removeprefix("::ffff:"), int(port)


def _read_peer(text: str) -> Peer:
    """Parse gRPC's peer string, such as `ipv4:127.0.0.1:80` or `ipv6:%5B::1%5D:80`."""
    host, _, port = unquote(text.partition(":")[2]).rpartition(":")
    address = host.strip("[]").removeprefix("::ffff:")
    return address, int(port) if port.isdecimal() else 0
