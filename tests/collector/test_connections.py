"""Requests of every form arrive complete; unrequested and slow input is bounded."""

import asyncio
import contextlib
import gc
import http.client
import os
import queue
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httptools
import pytest
import uvicorn
import uvloop
from waiting import until

from benchmarks.attacks.attacked_collector import attack_http
from benchmarks.attacks.http_attacks import many_idle
from collector.serving import bounded_connection, tls
from collector.serving.connections import Connections
from collector.serving.tracked_connection import TrackedConnection
from collector.serving.unfinished_requests import UnfinishedRequests

KIB = 1024
MIB = KIB * KIB
LONGEST = 8 * MIB
WAIT_S = 200.0
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class App:
    """Answers each request; by its path it reads the body, does not, or reads it when told to."""

    def __init__(self) -> None:
        self.read: queue.Queue[list[Message]] = queue.Queue()
        """The messages that each request was read by."""
        self.begun = threading.Event()
        self.begins = 0
        """How many requests were begun."""
        self.may_read = threading.Event()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve a request."""
        self.begun.set()
        self.begins += 1
        if scope["path"] == "/when-told":
            await asyncio.to_thread(self.may_read.wait, WAIT_S)
        if scope["path"] not in ("/refused", "/v1/busy"):
            messages = [await receive()]
            while messages[-1].get("more_body"):
                messages.append(await receive())
            self.read.put(messages)
        status = 503 if scope["path"] in ("/refused", "/v1/busy") else 200
        head = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": b"ok"})

    def body(self) -> bytes:
        """Return the body of the next request that was read."""
        return b"".join(message["body"] for message in self.read.get(timeout=WAIT_S))


class Serving(NamedTuple):
    """A server of the app."""

    app: App
    address: tuple[str, int]
    held: Connections

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection that will be used again."""
        return http.client.HTTPConnection(*self.address, timeout=WAIT_S)

    @contextlib.contextmanager
    def socket(self) -> Iterator[socket.socket]:
        """Give a bare connection."""
        with socket.create_connection(self.address, timeout=WAIT_S) as bare:
            yield bare


@pytest.fixture(params=["uvloop", "asyncio"])
def loop_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def serving(loop_kind: str) -> Iterator[Serving]:
    with server_of(loop_kind) as started:
        yield started


@contextlib.contextmanager
def server_of(
    loop_kind: str, connections: Connections | None = None, context: ssl.SSLContext | None = None
) -> Iterator[Serving]:
    app = App()
    held = Connections(100, 50) if connections is None else connections
    config = uvicorn.Config(
        held.app(app),
        loop=loop_kind,
        http=tls.accepting(  # type: ignore[arg-type]
            held, context, partial(bounded_connection.BoundedConnection, held)
        ),
        lifespan="off",
        proxy_headers=False,
        log_config=None,
        timeout_keep_alive=1,
    )
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield Serving(app, listener.getsockname(), held)
    finally:
        app.may_read.set()
        server.should_exit = True
        thread.join()
        listener.close()


def head(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def length(body: bytes) -> str:
    return f"Content-Length: {len(body)}"


def answer(bare: socket.socket) -> int:
    """Read one answer and return its status."""
    found = b""
    while not found.endswith(b"\r\n\r\nok"):  # byte by byte, for another may stand behind it
        more = bare.recv(1)
        assert more, f"the connection was closed after {found!r}"
        found += more
    return int(found.split()[1])


@pytest.mark.parametrize(
    "size", [0, 1, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, MIB, LONGEST, LONGEST + 1]
)
def test_bodies_of_every_size_arrive_as_they_were_sent(serving: Serving, size: int) -> None:
    """On one connection, one after the other."""
    connection = serving.connect()
    for _ in range(3):
        body = os.urandom(size)
        connection.request("POST", "/", body)
        answered = connection.getresponse()
        assert (answered.status, answered.read()) == (200, b"ok")
        assert serving.app.body() == body
    connection.close()


def test_a_body_in_chunks_arrives_as_it_was_sent(serving: Serving) -> None:
    """Its length is not known beforehand."""
    body = os.urandom(MIB)
    connection = serving.connect()
    pieces = (body[at : at + 100_000] for at in range(0, MIB, 100_000))
    connection.request("POST", "/", pieces, encode_chunked=True)
    assert connection.getresponse().read() == b"ok"
    assert serving.app.body() == body
    connection.close()


def test_requests_behind_one_another_are_answered_in_turn(serving: Serving) -> None:
    """A sender that does not wait for answers gets them all, whatever the bodies' lengths."""
    bodies = [os.urandom(size) for size in (MIB, 10, 100 * KIB, 0, 2 * MIB)]
    with serving.socket() as bare:
        whole = b"".join(head("/", length(body)) + body for body in bodies)
        sender = threading.Thread(target=bare.sendall, args=(whole,))
        sender.start()
        for body in bodies:
            assert answer(bare) == 200
            assert serving.app.body() == body
        sender.join()


def test_a_refusal_comes_before_the_body(serving: Serving) -> None:
    """Whoever looks for an answer while it sends has it at once; the connection goes on."""
    body = os.urandom(MIB)
    with serving.socket() as bare:
        for _ in range(3):
            bare.sendall(head("/refused", length(body)) + body[: 100 * KIB])
            assert answer(bare) == 503
            bare.sendall(body[100 * KIB :])
        bare.sendall(head("/", length(body)) + body)
        assert answer(bare) == 200
    assert serving.app.body() == body
    assert serving.app.read.empty()


def test_a_refused_body_and_the_next_request_may_come_in_one_piece(serving: Serving) -> None:
    """What follows the body that nobody wanted is a request of its own."""
    body = os.urandom(200 * KIB)
    with serving.socket() as bare:
        bare.sendall(
            head("/refused", length(body)) + body + head("/", "Content-Length: 3") + b"abc"
        )
        assert [answer(bare), answer(bare)] == [503, 200]
    assert serving.app.body() == b"abc"


def test_a_body_stays_with_its_sender_until_it_is_asked_for(serving: Serving) -> None:
    """The sender can send what fits the system's buffers, and the rest once the app reads."""
    body = os.urandom(LONGEST)
    with serving.socket() as bare:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            bare.setsockopt(socket.SOL_SOCKET, option, 64 * KIB)
        bare.sendall(head("/when-told", length(body)))
        assert serving.app.begun.wait(WAIT_S)
        bare.settimeout(0.5)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < len(body):
                sent += bare.send(body[sent : sent + 64 * KIB])
        assert sent < len(body)
        bare.settimeout(WAIT_S)
        serving.app.may_read.set()
        bare.sendall(body[sent:])
        assert answer(bare) == 200
    assert serving.app.body() == body


@pytest.mark.parametrize("sent", [0, 10 * KIB, 500 * KIB])
def test_a_sender_that_goes_away_is_a_disconnect(serving: Serving, sent: int) -> None:
    """The application waits for nobody, and half a body is none."""
    with serving.socket() as bare:
        bare.sendall(head("/", f"Content-Length: {MIB}") + bytes(sent))
        assert serving.app.begun.wait(WAIT_S)
    assert serving.app.read.get(timeout=WAIT_S)[-1] == {"type": "http.disconnect"}


@pytest.mark.slow
def test_whoever_stops_in_a_refused_body_is_disconnected(serving: Serving) -> None:
    """After the time that an idle connection has; and so is one that says nothing after it."""
    for sent in (100 * KIB, 200 * KIB):
        with serving.socket() as bare:
            bare.sendall(head("/refused", f"Content-Length: {200 * KIB}") + bytes(sent))
            assert answer(bare) == 503
            assert bare.recv(1) == b""


def test_a_sender_that_waits_to_be_told_is_told_to_go_on(serving: Serving) -> None:
    """`Expect: 100-continue` is answered only if the body is wanted."""
    body = os.urandom(MIB)
    with serving.socket() as bare:
        bare.sendall(head("/", length(body), "Expect: 100-continue"))
        assert bare.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        bare.sendall(body)
        assert answer(bare) == 200
        bare.sendall(head("/refused", length(body), "Expect: 100-continue"))
        assert answer(bare) == 503
    assert serving.app.body() == body


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Content-Length: 0", "Content-Length: 40"),
        ("Content-Length: 0, 40",),
        ("Content-Length: +0",),
        ("Content-Length: 0x0",),
        ("Content-Length: -1",),
        (f"Content-Length: {'9' * 30}",),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding : chunked",),
        ("X: y\r\n Transfer-Encoding: chunked", "Content-Length: 0"),
        ("X: a\rContent-Length: 3",),
        ("X: a\0b", "Content-Length: 0"),
    ],
)
def test_what_others_could_read_as_two_requests_is_none(
    serving: Serving, headers: tuple[str, ...]
) -> None:
    """400, and the connection ends: what stands behind is not looked at."""
    with serving.socket() as bare:
        bare.sendall(head("/", *headers) + b"0\r\n\r\n" + head("/", "Content-Length: 0"))
        assert status_of(bare) == b"HTTP/1.1 400 Bad Request"
    assert serving.app.begins <= 1


def test_chunks_of_a_byte_with_extensions_and_trailers_are_a_body(serving: Serving) -> None:
    """However long it takes to put them together."""
    with serving.socket() as bare:
        bare.sendall(head("/", "Transfer-Encoding: chunked") + b"1;a=b\r\nx\r\n" * 50_000)
        bare.sendall(b"0\r\nX-Trailer: 1\r\n\r\n" + head("/", "Content-Length: 1") + b"y")
        assert [answer(bare), answer(bare)] == [200, 200]
    assert [serving.app.body(), serving.app.body()] == [b"x" * 50_000, b"y"]


def test_garbage_is_400(serving: Serving) -> None:
    """As uvicorn answers it."""
    with serving.socket() as bare:
        bare.sendall(b"no request at all\r\n\r\n")
        assert bare.recv(12) == b"HTTP/1.1 400"


def status_of(bare: socket.socket) -> bytes:
    """Return the status line of an answer that ends the connection."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while more := bare.recv(4096):
            found += more
    return found.partition(b"\r\n")[0]


def is_refused(bare: socket.socket, pieces: list[bytes], *, pause_s: float = 0.001) -> bool:
    """Send the pieces, and say whether the peer ends the connection before the last."""
    try:
        for piece in pieces:
            bare.sendall(piece)
            time.sleep(pause_s)
    except OSError:
        return True
    return False


def big_head(size: int) -> bytes:
    """Return a head of exactly so many bytes."""
    empty = head("/", "X-Long: ")
    return head("/", "X-Long: " + "x" * (size - len(empty)))


def test_a_head_may_have_64_kib_and_100_headers(serving: Serving) -> None:
    """And not a byte or a header more: 431, before anything of it reaches the application."""
    for allowed in (big_head(64 * KIB), head("/", *(f"X-{i}: 1" for i in range(99)))):
        with serving.socket() as bare:
            bare.sendall(allowed)
            assert answer(bare) == 200
    for refused in (big_head(64 * KIB + 1), head("/", *(f"X-{i}: 1" for i in range(100)))):
        with serving.socket() as bare:
            bare.sendall(refused)
            assert status_of(bare) == b"HTTP/1.1 431 Request Header Fields Too Large"
    assert serving.app.read.qsize() == 2


def test_a_head_behind_a_body_has_the_same_bounds(serving: Serving) -> None:
    """Where both come in one piece."""
    with serving.socket() as bare:
        body = os.urandom(100 * KIB)
        bare.sendall(head("/", length(body)) + body + big_head(100 * KIB))
        assert status_of(bare) in (b"", b"HTTP/1.1 200 OK")
    assert serving.app.read.qsize() <= 1


@pytest.mark.parametrize(
    "start",
    [
        b"GET /" + b"x" * 1000,
        b"GET / HTTP/1.1\r\nX-Long: x",
        head("/", "Transfer-Encoding: chunked") + b"1;extension=",
        head("/", "Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\nX-Trailer: ",
    ],
    ids=["url", "header", "extension", "trailer"],
)
def test_what_grows_without_end_is_refused(serving: Serving, start: bytes) -> None:
    """Long before a megabyte, wherever in a request it grows."""
    with serving.socket() as bare:
        bare.sendall(start)
        assert is_refused(bare, [b"x" * 32 * KIB] * 200)


def test_heads_that_never_end_are_let_go_of(serving: Serving) -> None:
    """With their connections, not when the garbage collector comes by."""

    def parsers() -> int:
        return sum(type(one) is httptools.HttpRequestParser for one in gc.get_objects())

    gc.collect()
    before = parsers()
    gc.disable()
    try:
        for _ in range(50):
            with serving.socket() as bare:
                is_refused(bare, [b"GET / HTTP/1.1\r\nX-Long: ", *([b"x" * 32 * KIB] * 10)])
        until(lambda: serving.held.count == 0)
        assert parsers() - before < 10
    finally:
        gc.enable()


def test_trailers_without_end_are_refused(serving: Serving) -> None:
    """They count as headers."""
    with serving.socket() as bare:
        bare.sendall(head("/", "Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\n")
        assert is_refused(bare, [f"X-{i}: 1\r\n".encode() * 20 for i in range(200)])


def test_requests_behind_one_another_are_bounded(serving: Serving) -> None:
    """A peer that sends a thousand and reads nothing is disconnected."""
    with serving.socket() as bare, contextlib.suppress(ConnectionError):
        bare.sendall(head("/when-told", "Content-Length: 0") * 1000)
        assert bare.recv(1) == b""


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connection, "HEAD_WITHIN_S", 1.0)
    monkeypatch.setattr(bounded_connection, "BODY_WITHIN_S", 1.0)


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize(
    "sent",
    [b"", b"GET", b"GET / HTTP/1.1\r\nHost: x\r\n", head("/", "Content-Length: 100") + b"half"],
    ids=["nothing", "method", "half a head", "half a body"],
)
def test_whoever_falls_silent_is_disconnected(serving: Serving, sent: bytes) -> None:
    """Wherever that is in a request; half a head is answered 408."""
    with serving.socket() as bare, contextlib.suppress(ConnectionError):
        bare.sendall(sent)
        assert status_of(bare) in (b"", b"HTTP/1.1 408 Request Timeout")
    until(lambda: serving.held.count == 0)


@pytest.mark.usefixtures("_impatient")
def test_a_head_byte_by_byte_has_no_more_time(serving: Serving) -> None:
    """Each byte would keep an idle connection open, but not a head."""
    whole = head("/", "X-Slow: " + "x" * 100)
    with serving.socket() as bare:
        assert is_refused(bare, [whole[at : at + 1] for at in range(len(whole))], pause_s=0.05)


@pytest.mark.usefixtures("_impatient")
def test_a_body_that_is_not_read_yet_is_not_late(serving: Serving) -> None:
    """The sender does not pay for an application that takes its time."""
    body = os.urandom(LONGEST)
    with serving.socket() as bare:
        sender = threading.Thread(
            target=bare.sendall, args=(head("/when-told", length(body)) + body,)
        )
        sender.start()
        time.sleep(3)
        serving.app.may_read.set()
        assert answer(bare) == 200
        sender.join()
    assert serving.app.body() == body


def test_the_connection_that_was_silent_longest_makes_room(loop_kind: str) -> None:
    """A connection that is being answered does not, and new clients are served."""
    with server_of(loop_kind, Connections(5, 5)) as serving, contextlib.ExitStack() as stack:
        busy = stack.enter_context(serving.socket())
        busy.sendall(head("/when-told", "Content-Length: 0"))
        assert serving.app.begun.wait(WAIT_S)
        silent = [stack.enter_context(serving.socket()) for _ in range(4)]
        until(lambda: serving.held.count >= 5)
        silent[0].sendall(b"GET")  # heard of last
        time.sleep(0.2)
        for _ in range(3):
            newcomer = stack.enter_context(serving.socket())
            newcomer.sendall(head("/", "Content-Length: 0"))
            assert answer(newcomer) == 200
        for gone in silent[1:]:
            with contextlib.suppress(ConnectionResetError):
                assert gone.recv(1) == b""
        silent[0].sendall(b" / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer(silent[0]) == 200
        serving.app.may_read.set()
        assert answer(busy) == 200


@pytest.mark.slow
def test_half_bodies_do_not_fill_the_memory(serving: Serving) -> None:
    """Some are read, and then end, for others wait; one that is sent whole meanwhile is stored."""
    with contextlib.ExitStack() as stack:
        halves = [stack.enter_context(serving.socket()) for _ in range(12)]
        for half in halves:
            half.setblocking(False)
        unsent = {
            half: head("/", f"Content-Length: {LONGEST}") + bytes(LONGEST - 1) for half in halves
        }
        ended = set()
        body = os.urandom(MIB)
        connection = serving.connect()
        answered: queue.Queue[bytes] = queue.Queue()

        def ask() -> None:
            connection.request("POST", "/", body)
            answered.put(connection.getresponse().read())

        asking = threading.Thread(target=ask)
        asking.start()
        most, until_s = 0, time.monotonic() + WAIT_S
        while len(ended) < 4 and time.monotonic() < until_s:
            for half in halves:
                with contextlib.suppress(BlockingIOError):
                    try:
                        unsent[half] = (
                            unsent[half][half.send(unsent[half]) :] if unsent[half] else b""
                        )
                        if half.recv(1) == b"":
                            ended.add(half)
                    except ConnectionError:
                        ended.add(half)
            most = max(most, serving.held.unfinished.held_bytes)
        asking.join()
        connection.close()
        assert answered.get_nowait() == b"ok"
    assert len(ended) >= 4
    assert most < 40 * MIB


class Sender(TrackedConnection):
    """A connection that notes whether it is read and open."""

    is_read = is_open = True

    def pause_for_room(self) -> None:
        self.is_read = False

    def resume_for_room(self) -> None:
        self.is_read = True

    def abort(self) -> None:
        self.is_open = False


@pytest.mark.parametrize("is_waited_for", [True, False])
def test_nobody_stays_in_the_room_while_others_wait(is_waited_for: bool) -> None:
    """However fast it sends; the time of a waiting connection begins when it is read again."""
    room, long, other = UnfinishedRequests(), Sender(), Sender()
    room.count_received(long, 24 * MIB, 0.0)
    if is_waited_for:
        room.count_received(other, MIB, 100.0)
        assert not other.is_read
    for second in range(101, 120):
        for sender in (long, other):
            if sender.is_open and sender.is_read and sender.unfinished_bytes:
                room.count_received(sender, MIB, float(second))
        room.end_slow(float(second))
        assert long.is_open == (second <= 110 or not is_waited_for)
    assert other.is_open
    assert other.is_read


def test_half_bodies_keep_nobody_out(loop_kind: str) -> None:
    """The application begins few requests with incomplete bodies; complete ones are answered."""
    with server_of(loop_kind, Connections(400, 400)) as serving, contextlib.ExitStack() as stack:
        for size in (1, 50 * KIB):
            for _ in range(150):
                half = stack.enter_context(serving.socket())
                half.sendall(head("/", f"Content-Length: {100 * KIB}") + bytes(size))
        until(lambda: serving.held.count >= 300)
        for size in (0, 10, 100 * KIB):
            body = os.urandom(size)
            connection = serving.connect()
            connection.request("POST", "/", body)
            assert connection.getresponse().read() == b"ok"
            connection.close()
        assert serving.app.begins <= 64 + 3


def test_whoever_does_not_come_again_later_waits(serving: Serving) -> None:
    """An export right after a 503 is taken up when the time that was asked for is over."""
    connection = serving.connect()
    for path, least_s in (("/v1/busy", 0), ("/v1/", 0.9), ("/v1/", 0)):
        begun_s = time.monotonic()
        connection.request("POST", path, b"x")
        connection.getresponse().read()
        assert time.monotonic() - begun_s >= least_s
    connection.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"),
            *("-keyout", folder / "both.pem", "-out", folder / "cert.pem", "-days", "1"),
        ],
        check=True,
        capture_output=True,
    )
    both = folder / "both.pem"
    both.write_bytes(both.read_bytes() + (folder / "cert.pem").read_bytes())
    return both


def test_the_bounds_hold_under_tls(
    loop_kind: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bodies arrive, heads are refused, and handshakes that nobody makes end."""
    monkeypatch.setattr(bounded_connection, "HEAD_WITHIN_S", 2.0)
    monkeypatch.setattr(tls, "_HANDSHAKE_WITHIN_S", 2.0)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    with server_of(loop_kind, context=context) as serving:
        connection = http.client.HTTPSConnection(*serving.address, context=client)
        for size in (0, 10, MIB):
            body = os.urandom(size)
            connection.request("POST", "/", body)
            assert connection.getresponse().read() == b"ok"
            assert serving.app.body() == body
        connection.close()
        with serving.socket() as bare, client.wrap_socket(bare) as secured:
            secured.sendall(big_head(64 * KIB + 1))
            assert secured.recv(12) == b"HTTP/1.1 431"
        with serving.socket() as bare, contextlib.suppress(ConnectionResetError):
            assert bare.recv(1) == b""
        until(lambda: serving.held.count == 0)


class Unread(asyncio.Protocol):
    """A connection that is not read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.ended = transport, asyncio.Event()
        transport.pause_reading()

    def connection_lost(self, _exc: Exception | None) -> None:
        self.ended.set()


def test_little_is_held_under_tls_of_what_is_not_read(loop_kind: str, certificate: Path) -> None:
    """A thousand paused connections must not fill the memory; the kernel holds the rest."""
    unread = Unread()
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(certificate)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE

    def held_bytes(port: int) -> int:
        with socket.create_connection(("127.0.0.1", port)) as bare, client.wrap_socket(bare) as one:
            one.settimeout(1)
            with pytest.raises(TimeoutError):
                one.sendall(bytes(64 * MIB))
            return int(unread.transport.get_read_buffer_size())  # type: ignore[attr-defined]

    async def play() -> int:
        loop = asyncio.get_running_loop()
        made = tls.accepting(Connections(8, 8), server_context, lambda: unread)
        async with await loop.create_server(made, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            held = await loop.run_in_executor(None, held_bytes, port)
            unread.transport.abort()
            await unread.ended.wait()
            return held

    factory = uvloop.new_event_loop if loop_kind == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        assert 0 < runner.run(play()) <= 64 * KIB


def test_connections_under_tls_are_let_go_of(loop_kind: str, certificate: Path) -> None:
    """Soon after they end, though they hold each other in circles."""

    def held() -> int:
        return sum(isinstance(one, ssl.SSLObject) for one in gc.get_objects())

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    with server_of(loop_kind, context=context) as serving:
        gc.collect()
        before = held()
        gc.disable()
        try:
            for _ in range(3 * 32):
                with serving.socket() as bare, client.wrap_socket(bare) as secured:
                    secured.sendall(b"GET / HTTP/1.1\r\n")
            until(lambda: held() - before <= 32)
        finally:
            gc.enable()


@pytest.mark.slow
@pytest.mark.alone
def test_ten_thousand_idle_connections_hold_nobody_up() -> None:
    """A newcomer is answered, and the idle ones take little memory."""
    health_s, unanswered, memory_mib = attack_http(many_idle, 50)
    assert unanswered.measured == 0
    assert health_s.measured < 5, health_s
    assert memory_mib.measured <= 50, memory_mib
