"""Connections of the gRPC server: which are closed, and the memory they may hold."""

import contextlib
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
from stored_keys import add_key

from benchmarks.attacks.http2_bytes import END_HEADERS, HEADERS, Export, begin, frame, head
from collector.api_key import Scope
from collector.serving.grpc_connections import GrpcConnections
from collector.store import Store

MIB = 2**20
Serve = Callable[..., Any]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the system says nothing of bytes")


class Listening:
    """A port, the connections to it, and their limits."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self.stack = contextlib.ExitStack()
        self.listener = self.stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.accepted: dict[socket.socket, socket.socket] = {}
        self.watched = GrpcConnections(most, most_per_address)

    def connect(self) -> tuple[socket.socket, str]:
        """Connect, and return the peer's side with its name as gRPC says it."""
        peer = self.stack.enter_context(socket.create_connection(self.listener.getsockname()))
        self.accepted[peer] = self.stack.enter_context(self.listener.accept()[0])
        return peer, f"ipv4:127.0.0.1:{peer.getsockname()[1]}"

    def send(self, peer: socket.socket, pieces: int) -> None:
        """Send pieces of 64 KiB, each of which is read before the next one comes."""
        for _ in range(pieces):
            peer.sendall(bytes(64 * 1024))
            self.accepted[peer].recv(64 * 1024, socket.MSG_WAITALL)

    def sweep(self, now_s: float) -> None:
        """Look at all."""
        self.watched.sweep(self.listener.getsockname()[1], now_s)


@pytest.fixture
def listening() -> Iterator[Listening]:
    made = Listening(4, 3)
    with made.stack:
        yield made


def is_open(peer: socket.socket) -> bool:
    """Say whether the other side has not ended the connection."""
    peer.setblocking(False)
    try:
        return peer.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def test_the_oldest_goes_for_a_newcomer(listening: Listening) -> None:
    """Of one address, three may be; one that is being answered stays."""
    peers = []
    for number in range(5):
        peer, name = listening.connect()
        peers.append(peer)
        if number == 0:
            listening.watched.call_began(name, 0.0)
            listening.watched.wait_ended(name, 10)
        listening.sweep(0.0)
    assert [is_open(peer) for peer in peers] == [True, False, False, True, True]


def test_a_connection_without_a_call_ends(listening: Listening) -> None:
    """After half a minute; one that calls goes on."""
    (silent, _), (calling, name) = listening.connect(), listening.connect()
    for now_s in range(0, 50, 10):
        listening.sweep(now_s)
        listening.watched.call_began(name, now_s)
        listening.watched.wait_ended(name, 1)
        listening.watched.call_ended(name, now_s)
    assert (is_open(silent), is_open(calling)) == (False, True)


def test_a_head_without_end_is_ended(listening: Listening) -> None:
    """What comes without a call that waits for it may be a quarter of a megabyte."""
    (long, _), (short, name) = listening.connect(), listening.connect()
    listening.sweep(0.0)
    listening.watched.call_began(name, 0.0)
    for peer in (long, short):
        listening.send(peer, 5)
    listening.sweep(1.0)
    assert (is_open(long), is_open(short)) == (False, True)


def test_messages_between_two_looks_are_no_head(listening: Listening) -> None:
    """However many there were."""
    sending, name = listening.connect()
    for now_s in range(10):
        listening.sweep(now_s)
        for _ in range(3):
            listening.watched.call_began(name, now_s)
            listening.send(sending, 5)
            listening.watched.wait_ended(name, 5 * 64 * 1024)
            listening.watched.call_ended(name, now_s)
    listening.sweep(10.0)
    assert is_open(sending)


def test_calls_without_a_message_are_bounded(listening: Listening) -> None:
    """Some hundred of them end a connection, as they do if it begins calls to reset them."""
    resetting, name = listening.connect()
    listening.sweep(0.0)
    for _ in range(201):
        assert is_open(resetting)
        listening.watched.call_began(name, 0.0)
        listening.watched.wait_ended(name, None)
        listening.watched.call_ended(name, 0.0)
    assert not is_open(resetting)


def test_nobody_without_a_key_is_read(serve: Serve, database_url: str) -> None:
    """A call is refused by its head; its message need not be there."""
    with contextlib.closing(Store.open(database_url)) as store:
        add_key(store, "app", Scope.INGEST)
    server = serve(database_url, env={"DRAFTGATE_REQUIRE_KEYS": "1"})
    host, port = server.grpc.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as bare:
        bare.sendall(begin() + frame(HEADERS, END_HEADERS, 1, head()))
        found = b""
        while b"API key" not in found:
            more = bare.recv(65_536)
            assert more
            found += more


@pytest.mark.slow
def test_large_half_messages_do_not_fill_the_memory(serve: Serve, database_url: str) -> None:
    """Of forty that send 29 of 30 MB, those go that hold too much together."""
    server = serve(database_url)
    host, port = server.grpc.rsplit(":", 1)
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    with contextlib.ExitStack() as stack:
        ended = 0
        for _ in range(40):
            bare = stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
            try:
                Export(bare, 30 * MIB).send(29 * MIB)
            except OSError:
                ended += 1
        assert process.memory_info().rss - before < 500 * MIB
        assert ended > 0
        assert server.process.poll() is None


def test_whose_message_is_refused_hears_why(listening: Listening) -> None:
    """All of it may come between two sweeps: its connection stays, for the answer."""
    peer, name = listening.connect()
    listening.sweep(0.0)
    listening.watched.call_began(name, 0.0)
    listening.send(peer, 16)
    listening.watched.wait_ended(name, None)
    listening.sweep(0.1)
    assert is_open(peer)
    listening.send(peer, 16)
    listening.sweep(0.2)
    assert not is_open(peer)
