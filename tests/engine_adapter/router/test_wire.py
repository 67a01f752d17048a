"""Bytes on a connection to an engine, and the client's response."""

import gzip
import time
from http.client import IncompleteRead

import pytest
import wire_engine as wire
from running_router import QUESTION, FixedControl, recording, wired
from waiting import until
from wire_engine import (
    ASKED,
    CHUNKED,
    CHUNKS,
    EVENTS,
    LAST,
    SSE_HEAD,
    WHOLE,
    Peer,
    chunk,
    read_all,
    sending,
)

from collector.contract import Arm

STREAMED = QUESTION | {"stream": True, "stream_options": {"include_usage": True}}

FRAMED = {
    "chunks": (CHUNKED + CHUNKS + LAST,),
    "byte by byte": tuple(bytes([byte]) for byte in CHUNKED + CHUNKS + LAST),
    "an event over two chunks": (CHUNKED, chunk(WHOLE[:9]), chunk(WHOLE[9:]), LAST),
    "chunks cut anywhere": (
        CHUNKED[:30],
        CHUNKED[30:] + CHUNKS[:7],
        CHUNKS[7:] + LAST[:3],
        b"\r\n",
    ),
    "trailers": (CHUNKED, CHUNKS, b"0\r\nX-Checksum: 1\r\nX-Other: 2\r\n\r\n"),
    "extensions": (CHUNKED, b"%x;a=b\r\n%s\r\n" % (len(WHOLE), WHOLE), LAST),
    "a length": (SSE_HEAD + b"Content-Length: %d\r\n\r\n" % len(WHOLE), *EVENTS),
    "announcements": (
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + CHUNKED,
        CHUNKS + LAST,
    ),
    "line feeds alone": (CHUNKED.replace(b"\r\n", b"\n"), CHUNKS, LAST),
}
CLOSED = {
    "until the close": (SSE_HEAD + b"Connection: close\r\n\r\n", *EVENTS),
    "HTTP/1.0": (SSE_HEAD.replace(b"1.1", b"1.0") + b"\r\n", *EVENTS),
    "a length, closed": (
        SSE_HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(WHOLE),
        *EVENTS,
    ),
}


@pytest.mark.parametrize("name", sorted(FRAMED))
def test_a_stream_passes_however_it_is_framed(name: str) -> None:
    """Twice, over one connection: nothing of the first is left in the second."""
    with wired(sending(*FRAMED[name])) as (engine, router):
        for _ in range(2):
            status, headers, body = router.ask(STREAMED)
            assert (status, headers["content-type"], body) == (200, "text/event-stream", WHOLE)
            assert not {"x-checksum", "link", "content-length"} & {n.lower() for n in headers}
    assert len(engine.peers) == 1
    assert len(engine.requests) == 2


@pytest.mark.parametrize("name", sorted(CLOSED))
def test_a_stream_may_end_with_its_connection(name: str) -> None:
    """It is then whole, where nothing says how long it was to be."""

    def answer(peer: Peer, request: bytes) -> None:
        sending(*CLOSED[name])(peer, request)
        peer.close()

    with wired(answer) as (engine, router):
        for _ in range(2):
            assert router.ask(STREAMED)[::2] == (200, WHOLE)
        assert router.counted("failures") == {}
    assert len(engine.peers) == 2


def test_an_old_client_gets_a_stream_without_frames() -> None:
    """HTTP/1.0 knows no chunks: the connection's end is the answer's."""
    with (
        wired(sending(CHUNKED, *map(chunk, EVENTS), LAST)) as (_, router),
        router.connected() as client,
    ):
        client.sendall(ASKED.replace(b"HTTP/1.1", b"HTTP/1.0"))
        head, _, body = read_all(client).partition(b"\r\n\r\n")
    assert b"ransfer-" not in head
    assert body == WHOLE


def test_requests_that_are_sent_at_once_are_answered_in_turn() -> None:
    """A client may send the next before the answer to the last has come."""
    first = chunk(EVENTS[0])

    def answer(peer: Peer, request: bytes) -> None:
        del request
        for piece in (CHUNKED, first, first, first, chunk(EVENTS[1]), LAST):
            peer.send(piece)
            time.sleep(0.01)

    last = ASKED.replace(b"Host: x", b"Host: x\r\nConnection: close")
    with wired(answer) as (_, router), router.connected() as client:
        client.sendall(ASKED + ASKED + last)
        answers = read_all(client).split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert [answer.count(EVENTS[0]) for answer in answers] == [3, 3, 3]
    assert all(answer.endswith(LAST) for answer in answers)


def test_what_comes_behind_an_answer_belongs_to_nobody() -> None:
    """An engine that says more than it was asked, at once or later, is not asked there again."""
    other = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"

    def at_once(peer: Peer, request: bytes) -> None:
        sending(CHUNKED + CHUNKS + LAST + other)(peer, request)

    def later(peer: Peer, request: bytes) -> None:
        sending(CHUNKED + CHUNKS + LAST)(peer, request)
        time.sleep(0.2)
        peer.send(other)

    for answer in (at_once, later):
        with wired(answer) as (engine, router):
            assert router.ask(STREAMED)[2] == WHOLE
            until(lambda engine=engine: len(engine.gone) == 1)  # type: ignore[misc]
            assert router.ask(STREAMED)[2] == WHOLE
        assert len(engine.peers) == 2


def test_a_compressed_answer_passes_as_it_is() -> None:
    """Nobody asked for it, and the client is told how to read it."""
    packed = gzip.compress(b'{"choices":[]}')
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
    answer = head + b"Content-Length: %d\r\n\r\n%s" % (len(packed), packed)
    with wired(sending(answer)) as (_, router):
        _, headers, body = router.ask()
    assert headers["content-encoding"] == "gzip"
    assert body == packed


def test_a_head_is_asked_for_alone() -> None:
    """Its length is that of a body that does not come."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n"
    with wired(sending(head)) as (_, router), router.connected() as client:
        client.sendall(b"HEAD /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = read_all(client)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"Content-Length: 5\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


UNREADABLE = {
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a head without an end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 20),
    "two lengths": SSE_HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n",
    "length and chunks": SSE_HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n"
    b"Connection: Upgrade\r\n\r\n",
}


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_what_is_no_answer_in_http_is_the_engines_failure(name: str) -> None:
    """The client is told, and the connection is cut."""

    def answer(peer: Peer, request: bytes) -> None:
        sending(UNREADABLE[name])(peer, request)

    with wired(answer) as (engine, router):
        assert router.ask(STREAMED)[0] == 502
        assert router.counted("failures") == {"baseline,not_http": 1}
        until(lambda: len(engine.gone) == 1)


BROKEN = {
    "within a chunk, reset": (b"%x\r\n%s" % (len(WHOLE), WHOLE[:20]), Peer.reset),
    "within a chunk, closed": (b"%x\r\n%s" % (len(WHOLE), WHOLE[:20]), Peer.close),
    "within a chunk's size": (chunk(WHOLE[:20]) + b"1", Peer.close),
    "no chunk": (chunk(WHOLE[:20]) + b"not a size\r\n", Peer.close),
    "trailers without an end": (
        chunk(WHOLE[:20]) + b"0\r\nX: " + b"x" * (1 << 18),
        lambda _peer: None,
    ),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
@pytest.mark.parametrize("arm", list(Arm))
def test_a_stream_that_breaks_off_gives_what_had_come(name: str, arm: Arm) -> None:
    """Behind its first bytes nothing is added, and nobody else is asked."""
    begun, end = BROKEN[name]

    def answer(peer: Peer, request: bytes) -> None:
        sending(CHUNKED, chunk(EVENTS[0]))(peer, request)
        time.sleep(0.1)
        peer.send(begun)
        time.sleep(0.1)
        end(peer)

    with (
        wire.running(answer) as engine,
        recording(engine.url, engine.url, FixedControl(arm=arm)) as (router, collected),
    ):
        with pytest.raises(IncompleteRead) as cut:
            router.ask(STREAMED)
        assert cut.value.partial == EVENTS[0] + WHOLE[:20]
        (span,) = collected.wait_for(1)
        assert span["error.type"] == "stream_truncated"
        assert router.counted("fallbacks") == {}
    assert len(engine.requests) == 1


def test_a_length_that_is_not_reached_breaks_the_answer_off() -> None:
    """The end of a connection does not end a response that has a content length."""
    head = SSE_HEAD + b"Content-Length: 1000\r\n\r\n"

    def answer(peer: Peer, request: bytes) -> None:
        sending(head, EVENTS[0])(peer, request)
        peer.close()

    with wired(answer) as (_, router):
        with pytest.raises(IncompleteRead) as cut:
            router.ask(STREAMED)
        assert cut.value.partial == EVENTS[0]
        assert router.counted("failures") == {"baseline,stream_truncated": 1}
