"""Long bodies come whole and once; what nobody asks for is not read before it is answered."""

import asyncio
import contextlib
import http.client
import os
import queue
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

import pytest
import uvicorn

from collector.serving.http_connection import connections

KIB = 1024
MIB = KIB * KIB
LONGEST = 8 * MIB
WAIT_S = 30.0
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class App:
    """Answers each request; by its path it reads the body, does not, or reads it when told to."""

    def __init__(self) -> None:
        self.read: queue.Queue[list[Message]] = queue.Queue()
        """The messages that each request was read by."""
        self.begun = threading.Event()
        self.may_read = threading.Event()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve a request."""
        self.begun.set()
        if scope["path"] == "/when-told":
            await asyncio.to_thread(self.may_read.wait, WAIT_S)
        if scope["path"] != "/refused":
            messages = [await receive()]
            while messages[-1].get("more_body"):
                messages.append(await receive())
            self.read.put(messages)
        status = 503 if scope["path"] == "/refused" else 200
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

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection that will be used again."""
        return http.client.HTTPConnection(*self.address, timeout=WAIT_S)

    @contextlib.contextmanager
    def socket(self) -> Iterator[socket.socket]:
        """Give a bare connection."""
        with socket.create_connection(self.address, timeout=WAIT_S) as bare:
            yield bare


@pytest.fixture(params=["uvloop", "asyncio"])
def serving(request: pytest.FixtureRequest) -> Iterator[Serving]:
    app = App()
    config = uvicorn.Config(
        app,
        loop=request.param,
        http=connections(longest_body_bytes=LONGEST),  # type: ignore[arg-type]
        lifespan="off",
        log_config=None,
        timeout_keep_alive=1,
    )
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield Serving(app, listener.getsockname())
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


def test_a_long_body_comes_in_one_piece(serving: Serving) -> None:
    """So that nothing has to put it together."""
    connection = serving.connect()
    connection.request("POST", "/", os.urandom(MIB))
    connection.getresponse().read()
    (message,) = serving.app.read.get(timeout=WAIT_S)
    assert (message["type"], len(message["body"])) == ("http.request", MIB)
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


def test_whoever_stops_in_a_refused_body_is_disconnected(serving: Serving) -> None:
    """After the time that an idle connection has; and so is one that says nothing after it."""
    for sent in (100 * KIB, 200 * KIB):
        with serving.socket() as bare:
            bare.sendall(head("/refused", f"Content-Length: {200 * KIB}") + bytes(sent))
            assert answer(bare) == 503
            assert bare.recv(1) == b""


def test_a_sender_that_waits_to_be_told_is_told_to_go_on(serving: Serving) -> None:
    """`Expect: 100-continue`: only where the body is wanted."""
    body = os.urandom(MIB)
    with serving.socket() as bare:
        bare.sendall(head("/", length(body), "Expect: 100-continue"))
        assert bare.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        bare.sendall(body)
        assert answer(bare) == 200
        bare.sendall(head("/refused", length(body), "Expect: 100-continue"))
        assert answer(bare) == 503
    assert serving.app.body() == body


def test_garbage_is_400(serving: Serving) -> None:
    """As uvicorn answers it."""
    with serving.socket() as bare:
        bare.sendall(b"no request at all\r\n\r\n")
        assert bare.recv(12) == b"HTTP/1.1 400"
