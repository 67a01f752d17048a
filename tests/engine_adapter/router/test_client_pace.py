"""Clients that read slowly, disconnect or send much, and the memory held for them."""

import socket
import time
from contextlib import suppress
from http.client import HTTPResponse

import pytest
from running_router import QUICK, routing, wired
from waiting import until
from wire_engine import (
    ASKED,
    BODY,
    CHUNKED,
    CHUNKS,
    EVENTS,
    LAST,
    WHOLE,
    Peer,
    chunk,
    read_all,
    sending,
)

WORDS = EVENTS[0].replace(b'"stop"', b"null").replace(b'"a"', b'"' + b"x" * 65_000 + b'"')
MANY = 1_000


def flood(peer: Peer, request: bytes) -> None:
    """Send 65 MB of events as fast as they are taken."""
    del request
    peer.send(CHUNKED)
    for _ in range(MANY):
        peer.send(chunk(WORDS))
    peer.send(CHUNKS + LAST)


def stalled(peer: Peer) -> None:
    """Wait until the engine can send no more, and for longer than an engine may be silent."""
    before = -1
    while peer.sent_bytes != before:
        before = peer.sent_bytes
        time.sleep(1.2)


@pytest.mark.parametrize("asked", [BODY, b'{"stream":true}'], ids=["plain", "stripped"])
def test_a_slow_client_makes_the_engine_wait(asked: bytes) -> None:
    """Memory is bounded, an engine that has to wait is not taken for silent, and all arrives."""
    request = ASKED.replace(BODY, asked).replace(b": %d" % len(BODY), b": %d" % len(asked))
    request = request.replace(b"Host: x", b"Host: x\r\nConnection: close")
    with (
        wired(flood, upstream={"timeouts": QUICK}) as (engine, router),
        router.connected() as client,
    ):
        client.sendall(request)
        until(lambda: bool(engine.requests))
        (peer,) = engine.peers
        stalled(peer)
        assert peer.sent_bytes < 30 << 20  # most of it in the kernel's buffers
        response = HTTPResponse(client)
        response.begin()
        assert response.read() == WORDS * MANY + WHOLE
        assert router.counted("failures") == {}


def test_a_slow_client_that_leaves_ends_the_engines_work() -> None:
    """Though nothing is read from the engine just then."""
    with wired(flood, upstream={"timeouts": QUICK}) as (engine, router):
        with router.connected() as client:
            client.sendall(ASKED)
            until(lambda: bool(engine.requests))
            stalled(engine.peers[0])
        until(lambda: len(engine.gone) == 1)
        assert router.counted("failures") == {"baseline,client_disconnected": 1}


def test_a_client_that_leaves_within_a_chunk_ends_the_engines_work() -> None:
    """The engine is cut off at its next word at the latest."""

    def answer(peer: Peer, request: bytes) -> None:
        sending(CHUNKED, chunk(EVENTS[0]), b"%x\r\n%s" % (len(WHOLE), WHOLE[:20]))(peer, request)
        while True:
            peer.send(b"")
            if peer.connection.recv(1) == b"":
                return

    with wired(answer) as (engine, router):
        with router.connected() as client:
            client.sendall(ASKED)
            received = b""
            while WHOLE[:20] not in received.partition(EVENTS[0])[2]:
                received += client.recv(65536)
        until(lambda: len(engine.gone) == 1)
        assert router.counted("failures") == {"baseline,client_disconnected": 1}


def test_a_client_that_closes_its_half_has_left() -> None:
    """As before other servers: a client that shuts down its side is not waiting any more."""
    with (
        wired(lambda peer, _request: peer.send(CHUNKED + chunk(EVENTS[0]))) as (engine, router),
        router.connected() as client,
    ):
        client.sendall(ASKED)
        assert client.recv(65536)
        client.shutdown(socket.SHUT_WR)
        read_all(client)
        until(lambda: len(engine.gone) == 1)


def test_a_large_request_passes_whole() -> None:
    """Though no socket takes it at once."""
    question = b'{"messages":[{"content":"' + b"x" * (20 << 20) + b'"}]}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    with wired(sending(answer)) as (engine, router):
        assert router.ask(question)[0] == 200
    assert engine.requests[0].endswith(b"\r\n\r\n" + question)


def test_an_engine_that_reads_nothing_is_let_go_of() -> None:
    """If a client disconnects, the data buffered for it is freed."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/v1"
        with routing(url) as router:
            with router.connected() as client:
                body = b'{"messages":[{"content":"' + b"x" * (20 << 20) + b'"}]}'
                head = ASKED.partition(b"Content-Length")[0]
                client.sendall(head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                held, _ = deaf.accept()
                until(lambda: router.state()["in_flight"] == 2)
            until(lambda: router.state()["in_flight"] == 1)
            held.settimeout(30)
            with held, suppress(ConnectionResetError):
                read_all(held)
