"""What may come over a connection to an engine, and what a client gets of it."""

import gzip
import socket
import ssl
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPResponse, IncompleteRead
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import wire_engine as wire
from running_router import QUESTION, FixedControl, Router, collecting, routing
from wire_engine import CHUNKED, SSE_HEAD, Peer, chunk, sending

from collector.contract import Arm

NOBODY = "http://127.0.0.1:9/v1"
STREAMED = QUESTION | {"stream": True, "stream_options": {"include_usage": True}}
EVENTS = (
    b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
)
WHOLE = b"".join(EVENTS)
BODY = b'{"stream":true,"stream_options":{"include_usage":true}}'
ASKED = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (
    len(BODY),
    BODY,
)
LAST = b"0\r\n\r\n"
CHUNKS = b"".join(map(chunk, EVENTS))


def patiently(what: Callable[[], bool]) -> None:
    """Wait until it is so, and fail where it never is."""
    until_s = time.monotonic() + 30
    while not what():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def connected(router: Router) -> socket.socket:
    return socket.create_connection(("127.0.0.1", urlsplit(router.url).port or 0), timeout=30)


def read_all(client: socket.socket) -> bytes:
    parts = []
    while data := client.recv(1 << 20):
        parts.append(data)
    return b"".join(parts)


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
    with (
        wire.running(sending(*FRAMED[name])) as engine,
        routing(engine.url, NOBODY) as router,
    ):
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

    with wire.running(answer) as engine, routing(engine.url, NOBODY) as router:
        for _ in range(2):
            assert router.ask(STREAMED)[::2] == (200, WHOLE)
        assert router.counted("failures") == {}
    assert len(engine.peers) == 2


def test_an_old_client_gets_a_stream_without_frames() -> None:
    """HTTP/1.0 knows no chunks: the connection's end is the answer's."""
    with (
        wire.running(sending(CHUNKED, *map(chunk, EVENTS), LAST)) as engine,
        routing(engine.url, NOBODY) as router,
        connected(router) as client,
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
    with (
        wire.running(answer) as engine,
        routing(engine.url, NOBODY) as router,
        connected(router) as client,
    ):
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
        with wire.running(answer) as engine, routing(engine.url, NOBODY) as router:
            assert router.ask(STREAMED)[2] == WHOLE
            patiently(lambda engine=engine: len(engine.gone) == 1)  # type: ignore[misc]
            assert router.ask(STREAMED)[2] == WHOLE
        assert len(engine.peers) == 2


def test_a_compressed_answer_passes_as_it_is() -> None:
    """Nobody asked for it, and the client is told how to read it."""
    packed = gzip.compress(b'{"choices":[]}')
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
    answer = head + b"Content-Length: %d\r\n\r\n%s" % (len(packed), packed)
    with wire.running(sending(answer)) as engine, routing(engine.url, NOBODY) as router:
        _, headers, body = router.ask()
    assert headers["content-encoding"] == "gzip"
    assert body == packed


def test_a_head_is_asked_for_alone() -> None:
    """Its length is that of a body that does not come."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n"
    with (
        wire.running(sending(head)) as engine,
        routing(engine.url, NOBODY) as router,
        connected(router) as client,
    ):
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

    with wire.running(answer) as engine, routing(engine.url, NOBODY) as router:
        assert router.ask(STREAMED)[0] == 502
        assert router.counted("failures") == {"baseline,not_http": 1}
        patiently(lambda: len(engine.gone) == 1)


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
        collecting() as (collector, collected),
        routing(engine.url, engine.url, FixedControl(arm=arm), collector_url=collector) as router,
    ):
        with pytest.raises(IncompleteRead) as cut:
            router.ask(STREAMED)
        assert cut.value.partial == EVENTS[0] + WHOLE[:20]
        (span,) = collected.wait_for(1)
        assert span["error.type"] == "stream_truncated"
        assert router.counted("fallbacks") == {}
    assert len(engine.requests) == 1


def test_a_length_that_is_not_reached_breaks_the_answer_off() -> None:
    """A connection's end is no answer's end where a length was said."""
    head = SSE_HEAD + b"Content-Length: 1000\r\n\r\n"

    def answer(peer: Peer, request: bytes) -> None:
        sending(head, EVENTS[0])(peer, request)
        peer.close()

    with wire.running(answer) as engine, routing(engine.url, NOBODY) as router:
        with pytest.raises(IncompleteRead) as cut:
            router.ask(STREAMED)
        assert cut.value.partial == EVENTS[0]
        assert router.counted("failures") == {"baseline,stream_truncated": 1}


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
        wire.running(flood) as engine,
        routing(engine.url, NOBODY) as router,
        connected(router) as client,
    ):
        client.sendall(request)
        patiently(lambda: bool(engine.requests))
        (peer,) = engine.peers
        stalled(peer)
        assert peer.sent_bytes < 30 << 20  # most of it in the kernel's buffers
        response = HTTPResponse(client)
        response.begin()
        assert response.read() == WORDS * MANY + WHOLE
        assert router.counted("failures") == {}


def test_a_slow_client_that_leaves_ends_the_engines_work() -> None:
    """Though nothing is read from the engine just then."""
    with wire.running(flood) as engine, routing(engine.url, NOBODY) as router:
        with connected(router) as client:
            client.sendall(ASKED)
            patiently(lambda: bool(engine.requests))
            stalled(engine.peers[0])
        patiently(lambda: len(engine.gone) == 1)
        assert router.counted("failures") == {"baseline,client_disconnected": 1}


def test_a_client_that_leaves_within_a_chunk_ends_the_engines_work() -> None:
    """The engine is cut off at its next word at the latest."""

    def answer(peer: Peer, request: bytes) -> None:
        sending(CHUNKED, chunk(EVENTS[0]), b"%x\r\n%s" % (len(WHOLE), WHOLE[:20]))(peer, request)
        while True:
            peer.send(b"")
            if peer.connection.recv(1) == b"":
                return

    with wire.running(answer) as engine, routing(engine.url, NOBODY) as router:
        with connected(router) as client:
            client.sendall(ASKED)
            received = b""
            while WHOLE[:20] not in received.partition(EVENTS[0])[2]:
                received += client.recv(65536)
        patiently(lambda: len(engine.gone) == 1)
        assert router.counted("failures") == {"baseline,client_disconnected": 1}


def test_a_client_that_closes_its_half_has_left() -> None:
    """As before other servers: a client that shuts down its side is not waiting any more."""
    with (
        wire.running(lambda peer, _request: peer.send(CHUNKED + chunk(EVENTS[0]))) as engine,
        routing(engine.url, NOBODY) as router,
        connected(router) as client,
    ):
        client.sendall(ASKED)
        assert client.recv(65536)
        client.shutdown(socket.SHUT_WR)
        read_all(client)
        patiently(lambda: len(engine.gone) == 1)


def test_a_large_request_passes_whole() -> None:
    """Though no socket takes it at once."""
    question = b'{"messages":[{"content":"' + b"x" * (20 << 20) + b'"}]}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    with wire.running(sending(answer)) as engine, routing(engine.url, NOBODY) as router:
        assert router.ask(question)[0] == 200
    assert engine.requests[0].endswith(b"\r\n\r\n" + question)


def test_an_engine_that_reads_nothing_is_let_go_of() -> None:
    """A client that leaves frees what was to be sent there."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/v1"
        with routing(url, NOBODY) as router:
            with connected(router) as client:
                body = b'{"messages":[{"content":"' + b"x" * (20 << 20) + b'"}]}'
                head = ASKED.partition(b"Content-Length")[0]
                client.sendall(head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                held, _ = deaf.accept()
                patiently(lambda: router.state()["in_flight"] == 2)
            patiently(lambda: router.state()["in_flight"] == 1)
            held.settimeout(30)
            with held, suppress(ConnectionResetError):
                read_all(held)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a key and a certificate that it signed itself."""
    file = tmp_path_factory.mktemp("tls") / "localhost.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*command, "-keyout", str(file), "-out", str(file) + ".crt"],
        check=True,
        capture_output=True,
    )
    file.write_text(file.read_text() + Path(str(file) + ".crt").read_text())
    return file


def test_an_engine_may_stand_behind_tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a certificate that the machine trusts, and by no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with wire.running(sending(CHUNKED, *map(chunk, EVENTS), LAST), context) as engine:
        url = f"https://localhost:{engine.port}/v1"
        with routing(url, NOBODY) as router:
            assert router.ask(STREAMED)[0] == 502
            assert router.counted("failures") == {"baseline,tls_failure": 1}
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate) + ".crt")
        with routing(url, NOBODY) as router:
            for _ in range(2):
                assert router.ask(STREAMED)[2] == WHOLE
    assert len(engine.requests) == 2


def test_a_host_that_is_not_there_is_told_by_its_kind() -> None:
    """A name that nobody knows, and a port at which nobody listens."""
    for url, error_type in (
        ("http://nobody.invalid/v1", "dns_failure"),
        (NOBODY, "connection_refused"),
        ("http://localhost:9/v1", "connection_refused"),
    ):
        with routing(url, NOBODY) as router:
            assert router.ask(STREAMED)[0] == 502
            assert router.counted("failures") == {f"baseline,{error_type}": 1}
