"""The connections of the gRPC server, whose library bounds neither what they hold nor which go.

They are found among this process's open files, and ended there: the system says of each how many
bytes have come, and a call whose message is not complete may hold all of them.
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
"""For a connection without a call; the library says goodbye to honest ones before."""
_ROOM_BYTES: Final = 32 * 2**20
"""For messages that are not complete; beyond it, those go that send next to nothing."""
_MOST_BYTES: Final = 3 * _ROOM_BYTES
"""Beyond it, whoever came last goes."""
_PACE_BYTES: Final = 128 * 1024
_PACE_WITHIN_S: Final = 1.0
_HEAD_BYTES: Final = 256 * 1024
"""What may come without a call that waits for it: of heads, and of messages that begin."""
_CALL_BYTES: Final = 512
"""Of a call beside its message."""
_MOST_FRUITLESS: Final = 200
_FRUITLESS_WITHIN_S: Final = 5.0
"""Calls without a message that one address may begin within that time."""
_GIVES_BACK_EVERY_S: Final = 0.2
_RECEIVED: Final = struct.Struct("128xQ")
"""`tcpi_bytes_received` of Linux's `struct tcp_info`."""

_ADDRESS_BYTES: Final = 16
_libc: Final = ctypes.CDLL(None) if sys.platform == "linux" else None

Peer = tuple[str, int]


class _Accepted:
    """One connection."""

    def __init__(self, peer: Peer, now_s: float) -> None:
        self.peer = peer
        self.file = -1
        """Its number; -1 before it is found."""
        self.calls = self.waiting = 0
        """Those that are not answered, and of them those whose message is not complete."""
        self.quiet_s = self.paced_s = now_s
        """When its last call ended, and when so much had last come as has to."""
        self.received_bytes = self.paced_bytes = 0
        self.done_bytes = 0
        """What had come before the messages that are not complete."""

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
        """What it may hold of heads and messages that are not complete."""
        return max(0, self.received_bytes - self.done_bytes)

    def look(self, now_s: float) -> None:
        """Ask the system how much has come."""
        with suppress(OSError, AttributeError, struct.error), _at(self.file) as found:
            told = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size)
            (self.received_bytes,) = _RECEIVED.unpack(told)
        if self.received_bytes - self.paced_bytes >= _PACE_BYTES or not self.waiting:
            self.paced_s, self.paced_bytes = now_s, self.received_bytes
        if not self.waiting:  # its messages may have been longer than what came: they are inflated
            self.done_bytes = min(self.done_bytes, self.received_bytes)

    def is_beyond(self, now_s: float) -> bool:
        """Say whether it has had no call for long, or sends what is none."""
        is_late = not self.calls and now_s - self.quiet_s > _CALL_WITHIN_S
        return is_late or (not self.waiting and self.held_bytes > _HEAD_BYTES)

    def came(self, size_bytes: int | None) -> None:
        """Note that a call waits no more, for its message of that size, or for none."""
        self.waiting = max(0, self.waiting - 1)
        self.done_bytes += _CALL_BYTES + (size_bytes or 0)
        if not self.waiting:
            self.done_bytes = max(self.done_bytes, self.received_bytes)

    def abort(self) -> None:
        """As in `OpenConnection`."""
        with suppress(OSError), _at(self.file) as found:
            if _peer_of(found) == self.peer:
                _disconnect(found)


class GrpcConnections:
    """Those of one server."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._open: OpenConnections[_Accepted] = OpenConnections(most, most_per_address)
        self._lock = threading.Lock()
        self._known: dict[tuple[int, int], Peer | None] = {}
        """Open files by number and inode; None if they are something else."""
        self._by_peer: dict[Peer, _Accepted] = {}
        self._fruitless: Counter[str] = Counter()
        """Calls without a message, by address."""
        self._fruitless_s = 0.0
        """Since when they are counted."""
        self._ended = False
        """Whether connections were ended since memory was last given back."""
        self._given_back_s = 0.0

    def began(self, peer: str, now_s: float) -> None:
        """Note that a call waits for its message."""
        key = _read_peer(peer)
        with self._lock:
            found = self._by_peer.setdefault(key, _Accepted(key, now_s))
            if not found.waiting:
                found.done_bytes = max(found.done_bytes, found.received_bytes)
            found.calls += 1
            found.waiting += 1

    def came(self, peer: str, size_bytes: int | None) -> None:
        """Note that a call waits no more, for its message of that size, or for none."""
        with self._lock:
            if found := self._by_peer.get(_read_peer(peer)):
                found.came(size_bytes)
                if size_bytes is None:
                    self._fruitless[found.address] += 1
                    if self._fruitless[found.address] > _MOST_FRUITLESS:
                        found.abort()

    def ended(self, peer: str, now_s: float) -> None:
        """Note that a call is answered."""
        with self._lock:
            if found := self._by_peer.get(_read_peer(peer)):
                found.calls = max(0, found.calls - 1)
                found.quiet_s = now_s
                if found.file < 0 and not found.calls:
                    del self._by_peer[found.peer]

    def sweep(self, port: int, now_s: float) -> None:
        """End those that are too many, hold too much, or have had no call for long."""
        with self._lock:
            self._find(port, now_s)
            if now_s - self._fruitless_s > _FRUITLESS_WITHIN_S:
                self._fruitless_s = now_s
                self._fruitless.clear()
            accepted = list(self._open)
            for one in accepted:
                one.look(now_s)
            beyond = [one for one in accepted if one.is_beyond(now_s)]
            beyond += _too_much([one for one in accepted if one.waiting], now_s)
        for one in beyond:
            one.abort()
        self._give_back(now_s, ended=bool(beyond))

    def _give_back(self, now_s: float, *, ended: bool) -> None:
        """Have the system get what ended connections held.

        The calls of gRPC are Python objects that hold each other, and the C library keeps memory.
        """
        self._ended |= ended
        if self._ended and now_s - self._given_back_s > _GIVES_BACK_EVERY_S:
            self._ended, self._given_back_s = ended, now_s
            gc.collect(1)
            if _libc is not None and hasattr(_libc, "malloc_trim"):
                _libc.malloc_trim(0)

    def _find(self, port: int, now_s: float) -> None:
        """Take in those that are new, and forget those that are gone."""
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
    """Return those that must go, for all together hold too much."""
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
    """Return a socket beside the one that the library has; to be closed."""
    copied = os.dup(file)
    try:
        return socket.socket(fileno=copied)
    except OSError:
        os.close(copied)
        raise


def _disconnect(found: socket.socket) -> None:
    """End a connection and drop what has come; shut down, the library would still read it."""
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


def _read_peer(said: str) -> Peer:
    """Read what gRPC says of a peer, such as `ipv4:127.0.0.1:80` or `ipv6:%5B::1%5D:80`."""
    host, _, port = unquote(said.partition(":")[2]).rpartition(":")
    address = host.strip("[]").removeprefix("::ffff:")
    return address, int(port) if port.isdecimal() else 0
