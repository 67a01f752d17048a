"""Bytes on a client's connection, and the router's responses."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import running_router
import uvloop
import wire_engine as wire
from running_router import QUESTION, FixedControl, Router, routing, wired
from waiting import until
from wire_engine import ASKED, BODY, CHUNKED, LAST, SSE_HEAD, WHOLE, Peer, chunk, sending

from engine_adapter.router.decision import Decision, RequestFacts
from engine_adapter.router.http1 import listener
from engine_adapter.router.settings import RouterLimits

POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
LENGTH = b"Content-Length: %d\r\n\r\n" % len(BODY)
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
ONE = chunk(WHOLE)
ANSWERING = sending(CHUNKED + ONE + LAST)


@pytest.fixture(autouse=True, params=["asyncio", "uvloop"])
def _loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the router on either loop, whose transports are different programs."""
    made = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
    monkeypatch.setattr(running_router, "new_loop", made)


class Client:
    """A connection, with the received bytes that are not read yet."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.left = b""

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.sendall(piece)
            time.sleep(0.001 if len(pieces) > 1 else 0)

    def until(self, end: bytes) -> bytes:
        """Return what comes up to some bytes, these included."""
        while end not in self.left:
            data = self.connection.recv(65536)
            assert data, self.left
            self.left += data
        found, _, self.left = self.left.partition(end)
        return found + end

    def answer(self) -> tuple[int, bytes]:
        """Return the next answer's status and body."""
        head = self.until(b"\r\n\r\n")
        status = int(head.split(b" ")[1])
        if b"chunked" in head:
            return status, self.until(LAST)
        length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
        while len(self.left) < length:
            self.left += self.connection.recv(65536)
        body, self.left = self.left[:length], self.left[length:]
        return status, body

    def is_closed(self) -> bool:
        """Wait for the end of the connection; say whether nothing came before it."""
        return not self.left and self.connection.recv(1) == b""


@contextmanager
def asking(
    answer: wire.Answer = ANSWERING, **settings: object
) -> Iterator[tuple[Client, wire.Engine, Router]]:
    """Connect to a router in front of an engine."""
    with wired(answer, **settings) as (engine, router), router.connected() as connection:
        yield Client(connection), engine, router


CHUNKED_BODY = POST + b"Transfer-Encoding: chunked\r\n\r\n"
READABLE = {
    "in one piece": (ASKED,),
    "byte by byte": tuple(bytes([byte]) for byte in ASKED),
    "in chunks": (CHUNKED_BODY + chunk(BODY[:9]) + chunk(BODY[9:]) + LAST,),
    "in chunks with a trailer": (
        CHUNKED_BODY,
        chunk(BODY),
        b"0\r\nX-Checksum: 3\r\nX-Key: sk\r\n\r\n",
    ),
    "behind empty lines": (b"\r\n\r\n", ASKED),
    "as to a proxy": (ASKED.replace(b" /v1", b" http://other:1/v1"),),
}


@pytest.mark.parametrize("name", sorted(READABLE))
def test_a_request_is_read_however_it_comes(name: str) -> None:
    """Twice, over one connection; the engine gets the same body, with its length."""
    with asking() as (client, engine, _):
        for _ in range(2):
            client.send(*READABLE[name])
            assert client.answer() == (200, ONE + LAST)
    assert len(engine.requests) == 2
    for request in engine.requests:
        head, _, body = request.partition(b"\r\n\r\n")
        assert body == BODY
        assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1")
        assert not {b"x-key", b"upgrade", b"transfer-encoding"} & set(head.lower().split(b"\r\n"))


def test_requests_behind_one_another_are_answered_in_turn() -> None:
    """Though the first takes longest, one is refused, and they come in any pieces."""
    delays = iter((0.1, 0.0))

    def answer(peer: Peer, request: bytes) -> None:
        time.sleep(next(delays))
        ANSWERING(peer, request)

    refused = b"GET /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n"
    with asking(answer) as (client, _, _):
        client.send(ASKED + HEALTH + refused + ASKED[:30])
        client.send(ASKED[30:] + HEALTH)
        answers = [client.answer() for _ in range(5)]
    assert [status for status, _ in answers] == [200, 200, 404, 200, 200]
    assert [body for _, body in answers if b"error" not in body] == [
        ONE + LAST,
        b"ok",
        ONE + LAST,
        b"ok",
    ]


def test_an_upgrade_need_not_be_taken_up() -> None:
    """A client that offers one is answered as any other, and so is what it asks behind it."""
    offered = HEALTH.replace(b"Host: x", b"Host: x\r\nConnection: Upgrade\r\nUpgrade: h2c")
    with asking() as (client, _, _):
        client.send(offered + HEALTH + offered)
        assert [client.answer() for _ in range(3)] == [(200, b"ok")] * 3


def test_a_client_that_waits_to_send_its_body_is_told_to() -> None:
    """With `Expect: 100-continue`; the engine hears nothing of it."""
    with asking() as (client, engine, _):
        client.send(POST + b"Expect: 100-continue\r\n" + LENGTH)
        assert client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(BODY)
        assert client.answer() == (200, ONE + LAST)
    assert b"expect" not in engine.requests[0].lower()


def test_a_request_that_is_refused_by_its_head_sends_no_body() -> None:
    """It is told at once; what it sends all the same is thrown away, whatever that looks like."""
    with asking(limits=RouterLimits(body_bytes=100)) as (client, engine, router):
        client.send(b"POST /elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + ASKED)
        assert client.answer()[0] == 404
        client.send(ASKED)
        assert client.is_closed()
        with router.connected() as other:
            other.sendall(POST + b"Content-Length: 1000\r\n\r\n" + b"x" * 101)
            status, body = Client(other).answer()
            assert (status, json.loads(body)["error"]["code"]) == (413, "request_too_large")
            other.sendall(b"x" * 899 + ASKED)
        assert router.state()["in_flight"] == 1
        assert router.counted("refusals") == {"unknown_url": 1, "request_too_large": 1}
    assert engine.requests == []


def test_a_refused_request_that_is_whole_leaves_the_connection() -> None:
    """A client that asked for the wrong thing may ask for another."""
    with asking(limits=RouterLimits(body_bytes=100)) as (client, _, router):
        for sent, status in (
            (b"GET /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n", 404),
            (POST + b"Content-Length: 101\r\n\r\n" + b"x" * 101, 413),
            (ASKED, 200),
        ):
            client.send(sent)
            assert client.answer()[0] == status
        assert router.counted("responses") == {"200": 1}


SMUGGLED = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
UNREADABLE = {
    "no HTTP": b"\x16\x03\x01\x02\x00",
    "another version": ASKED.replace(b"HTTP/1.1", b"HTTP/2.0"),
    "no host": ASKED.replace(b"Host: x\r\n", b""),
    "two hosts": ASKED.replace(b"Host: x", b"Host: x\r\nHost: y"),
    "two equal lengths": ASKED.replace(b"Host: x", b"Host: x\r\n" + LENGTH[:-4]),
    "two codings": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunk(BODY) + LAST,
    "chunks of an old client": (CHUNKED_BODY + chunk(BODY) + LAST).replace(b"/1.1", b"/1.0"),
    "a chunk that is longer than it says": CHUNKED_BODY + b"3\r\n" + BODY + b"\r\n" + LAST,
    "line feeds alone": ASKED.replace(b"\r\n", b"\n"),
    "a length in a trailer": CHUNKED_BODY + chunk(BODY) + b"0\r\nContent-Length: 3\r\n\r\n",
    "a body behind an upgrade": ASKED.replace(BODY, SMUGGLED)
    .replace(b": %d" % len(BODY), b": %d" % len(SMUGGLED))
    .replace(b"Host: x", b"Host: x\r\nConnection: Upgrade\r\nUpgrade: h2c", 1),
    "a tunnel": b"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n" + ASKED,
    "a control character": ASKED.replace(b"Host: x", b"Host: x\r\nX: a\x00b"),
    "a trailer without an end": CHUNKED_BODY + b"0\r\n" + b"X: y\r\n" * 20_000,
}


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_what_two_servers_could_read_differently_ends_the_connection(name: str) -> None:
    """With 400, once; nothing of it reaches the engine, nor what stands behind it."""
    with asking() as (client, engine, router):
        client.send(HEALTH)
        assert client.answer() == (200, b"ok")
        client.send(UNREADABLE[name])
        status, body = client.answer()
        assert (status, json.loads(body)["error"]["code"]) == (400, "bad_request")
        assert client.is_closed()
        assert router.state()["in_flight"] == 1
    assert engine.requests == []


def test_nothing_is_read_behind_a_last_request() -> None:
    """A client that says `Connection: close`, or is of HTTP/1.0, sends no more."""
    for last in (
        ASKED.replace(b"Host: x", b"Host: x\r\nConnection: close"),
        ASKED.replace(b"HTTP/1.1", b"HTTP/1.0"),
    ):
        with asking() as (client, engine, _):
            client.send(last + ASKED)
            client.until(b"\r\n\r\n")
            client.until(WHOLE if b"1.0" in last else ONE + LAST)
            assert client.is_closed()
        assert len(engine.requests) == 1


def test_an_old_client_keeps_its_connection_where_it_asks_to() -> None:
    """An answer whose length is known leaves it open."""
    old = HEALTH.replace(b"HTTP/1.1", b"HTTP/1.0").replace(
        b"Host: x", b"Host: x\r\nConnection: keep-alive"
    )
    with asking() as (client, _, _):
        for _ in range(2):
            client.send(old)
            head = client.until(b"\r\n\r\n")
            assert b"\r\nConnection: keep-alive\r\n" in head
            assert client.until(b"ok") == b"ok"


def test_an_answer_that_never_began_is_replaced_whole() -> None:
    """A stream's head was there: the failure's own takes its place, and the connection stays."""

    def answer(peer: Peer, request: bytes) -> None:
        sending(SSE_HEAD + b"Connection: close\r\n\r\n")(peer, request)
        peer.close()

    with asking(answer) as (client, _, _):
        for _ in range(2):
            client.send(ASKED)
            status, body = client.answer()
            assert (status, json.loads(body)["error"]["code"]) == (502, "stream_truncated")


def test_a_client_that_leaves_within_its_request_is_forgotten() -> None:
    """Within its head, its body, or a request behind one that is being answered."""
    with asking() as (client, _, router):
        for begun in (POST, POST + LENGTH + BODY[:3], HEALTH + POST + LENGTH + BODY[:3]):
            with router.connected() as other:
                other.sendall(begun)
                if begun.startswith(HEALTH):
                    assert Client(other).answer() == (200, b"ok")
        until(lambda: router.state()["in_flight"] == 1)
        client.send(ASKED)
        assert client.answer()[0] == 200


def test_a_router_that_stops_answers_what_is_whole_and_refuses_what_is_not() -> None:
    """An idle connection is closed, a stream goes on to its end, and then its connection closes."""

    def answer(peer: Peer, request: bytes) -> None:
        sending(CHUNKED)(peer, request)
        for _ in range(5):
            peer.send(ONE)
            time.sleep(0.2)
        peer.send(LAST)

    def refused() -> tuple[int, bytes]:
        found = unfinished.answer()
        assert unfinished.is_closed()
        unfinished.connection.close()
        return found

    with wire.running(answer) as engine, ThreadPoolExecutor(1) as pool:
        with routing(engine.url) as router:
            clients = [Client(router.connected()) for _ in range(3)]
            idle, unfinished, streaming = clients
            idle.send(HEALTH)
            assert idle.answer() == (200, b"ok")
            unfinished.send(POST + LENGTH + BODY[:3])
            refusal = pool.submit(refused)
            streaming.send(ASKED)
            streaming.until(ONE)
        assert idle.is_closed()
        status, body = refusal.result()
        assert (status, json.loads(body)["error"]["code"]) == (503, "router_stopping")
        assert streaming.until(LAST) == 4 * ONE + LAST
        assert streaming.is_closed()
        for client in clients:
            client.connection.close()


def test_a_stream_that_goes_on_is_cut_after_its_time() -> None:
    """A router that stops waits for `finish_s`, and no longer."""
    over = threading.Event()

    def answer(peer: Peer, request: bytes) -> None:
        sending(CHUNKED + ONE)(peer, request)
        over.wait(60)

    with wire.running(answer) as engine:
        with routing(engine.url, limits=RouterLimits(finish_s=0.1)) as router:
            client = Client(router.connected())
            client.send(ASKED)
            client.until(ONE)
        assert client.is_closed()
        client.connection.close()
        over.set()


def test_a_failure_of_the_router_is_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Without what was asked, and the next request is answered."""

    class Failing(FixedControl):
        def decide(self, facts: RequestFacts) -> Decision:  # noqa: ARG002
            raise RuntimeError("no decision")

    with wired(ANSWERING, control=Failing()) as (_, router):
        status, _, body = router.ask(QUESTION)
        assert (status, json.loads(body)["error"]["code"]) == (500, "internal_error")
        assert router.ask({}, path="/embeddings")[0] == 200
    assert "no decision" in caplog.text
    assert "Where?" not in caplog.text


def test_a_connection_on_which_nothing_comes_to_its_end_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request that is not whole in time is refused, though it trickles; an idle one just ends."""
    monkeypatch.setattr(listener, "_SWEEP_S", 0.02)
    monkeypatch.setattr(listener, "_REQUEST_S", 0.3)
    monkeypatch.setattr(listener, "_KEEP_S", 0.3)
    with asking() as (client, engine, router):
        client.send(POST)
        client.send(*[bytes([byte]) for byte in LENGTH], BODY[:3])
        status, body = client.answer()
        assert (status, json.loads(body)["error"]["code"]) == (408, "request_timeout")
        assert client.is_closed()
        with router.connected() as connection:
            idle = Client(connection)
            idle.send(HEALTH)
            assert idle.answer() == (200, b"ok")
            assert idle.is_closed()
        assert router.state()["in_flight"] == 1
    assert engine.requests == []
