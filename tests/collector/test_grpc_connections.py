"""gRPC connections: messages of every form arrive, and what a peer may send is bounded."""

import asyncio
import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import grpc
import h2.config
import h2.connection
import h2.events
import h2.settings
import psutil
import pytest
import uvloop
from google.protobuf.wrappers_pb2 import Int64Value
from stored_keys import add_key
from waiting import until

from benchmarks.attacks.http2_bytes import (
    CONTINUATION,
    END_HEADERS,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    Export,
    begin,
    frame,
    head,
    literal,
)
from collector.api_key import Scope
from collector.serving import grpc_connection
from collector.serving.connections import Connections
from collector.serving.grpc_call import Call
from collector.serving.grpc_connection import GrpcConnection
from collector.serving.grpc_reply import CallReply, answered
from collector.store import Store

KIB, MIB = 1024, 2**20
WAIT_S = 200.0
Serve = Callable[..., Any]
METHOD = "/any/Method"
HEAD = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", METHOD),
    (":authority", "x"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
]


class Serving(NamedTuple):
    """A server that answers each message with its length, and "hold" only after "release"."""

    address: tuple[str, int]
    held: Connections
    messages: list[bytes]

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=WAIT_S)

    def channel(self) -> grpc.Channel:
        host, port = self.address
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
        return grpc.insecure_channel(f"{host}:{port}", options)


@pytest.fixture(params=["uvloop", "asyncio"])
def serving(request: pytest.FixtureRequest) -> Iterator[Serving]:
    loop = uvloop.new_event_loop() if request.param == "uvloop" else asyncio.new_event_loop()
    messages: list[bytes] = []

    async def serve(call: Call) -> CallReply:
        await call.announced_bytes()
        async with call.message() as body:
            messages.append(body)
            if body == b"release":
                released.set()
            elif body == b"hold":
                await released.wait()
        return answered(Int64Value(value=len(body)))

    held, over, turns = Connections(8, 6), asyncio.Event(), asyncio.Semaphore(8)
    released = asyncio.Event()
    address: queue.Queue[tuple[str, int]] = queue.Queue()

    async def run() -> None:
        server = await loop.create_server(
            lambda: GrpcConnection(held, serve, turns), "127.0.0.1", 0
        )
        address.put(server.sockets[0].getsockname())
        await over.wait()
        server.close()
        held.abort()
        while held.count:  # noqa: ASYNC110  # connections know no event
            await asyncio.sleep(0.01)

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    try:
        yield Serving(address.get(timeout=WAIT_S), held, messages)
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


class Peer:
    """A client whose every frame the test decides."""

    def __init__(self, connection: socket.socket, first_window: int | None = None) -> None:
        self.socket, self.replies = connection, True
        self.http = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        if first_window is not None:
            self.http.local_settings[h2.settings.SettingCodes.INITIAL_WINDOW_SIZE] = first_window
        self.http.initiate_connection()
        self.flush()

    def flush(self) -> None:
        self.socket.sendall(self.http.data_to_send())

    def call(self, *pieces: bytes, head: list[tuple[str, str]] = HEAD, ends: bool = True) -> int:
        """Begin a call, send pieces of its message, and return its stream."""
        stream = self.http.get_next_available_stream_id()
        self.http.send_headers(stream, head)
        for number, piece in enumerate(pieces):
            self.http.send_data(stream, piece, end_stream=ends and number == len(pieces) - 1)
        self.flush()
        return stream

    def events(self) -> Iterator[h2.events.Event]:
        """Yield what the server sends, to the end of the connection."""
        while data := self.socket.recv(65_536):
            yield from self.http.receive_data(data)
            if self.replies:
                self.flush()

    def status(self, stream: int) -> str:
        """Return the status of a call: `grpc-status`, or `:status` without one."""
        for event in self.events():
            if isinstance(event, h2.events.ResponseReceived | h2.events.TrailersReceived):
                named = dict(event.headers)
                if event.stream_id == stream and (event.stream_ended or "grpc-status" in named):
                    return str(named.get("grpc-status") or named[":status"])
        raise AssertionError("the connection ended without a status")

    def ended_by(self, sent: bytes) -> int | None:
        """Send what ends the connection; return the code of its GOAWAY, if that came first."""
        code = None
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(sent)
            for event in self.events():
                if isinstance(event, h2.events.ConnectionTerminated):
                    code = int(event.error_code or 0)
        return code


def message(body: bytes, flag: int = 0, more: int = 0) -> bytes:
    return bytes([flag]) + (len(body) + more).to_bytes(4, "big") + body


@pytest.mark.parametrize("size", [0, 1, 16 * KIB, 65_530, 65_531, 100 * KIB, 9 * MIB])
def test_messages_of_every_size_arrive(serving: Serving, size: int) -> None:
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    with serving.channel() as channel:
        answer = channel.unary_unary(METHOD)(body, timeout=WAIT_S)
    assert Int64Value.FromString(answer).value == size
    assert serving.messages == [body]


def test_large_messages_share_a_connection(serving: Serving) -> None:
    """One at a time has the window to send all of it; then it is another's turn."""
    with serving.channel() as channel, ThreadPoolExecutor(8) as pool:
        call = channel.unary_unary(METHOD)
        bodies = [bytes([number]) * 3 * MIB for number in range(8)]
        answers = list(pool.map(lambda body: call(body, timeout=WAIT_S), bodies))
    assert [Int64Value.FromString(answer).value for answer in answers] == [3 * MIB] * 8
    assert sorted(serving.messages) == bodies


def test_a_message_in_pieces_is_one(serving: Serving) -> None:
    """Wherever it is cut, and if its end comes in a frame of its own."""
    with serving.connect() as bare:
        peer = Peer(bare)
        whole = message(b"abcdef")
        for at in range(len(whole)):
            assert peer.status(peer.call(whole[:at], whole[at:], b"")) == "0"
    assert serving.messages == [b"abcdef"] * len(whole)


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        ((message(b"x"), message(b"y")), "12"),
        ((message(b"x", more=1),), "3"),
        ((b"",), "3"),
        ((b"\0\0",), "3"),
        ((message(b"x", flag=1),), "13"),
        ((message(b"x", flag=7),), "13"),
    ],
)
def test_what_is_not_one_message_is_refused(
    serving: Serving, pieces: tuple[bytes, ...], status: str
) -> None:
    """And the connection goes on."""
    with serving.connect() as bare:
        peer = Peer(bare)
        assert peer.status(peer.call(*pieces)) == status
        assert peer.status(peer.call(message(b"good"))) == "0"
    assert serving.messages == [b"good"]


@pytest.mark.parametrize(
    "changed", [{"content-type": "text/plain"}, {"content-type": "application/grpc-web"}]
)
def test_what_is_no_grpc_is_415(serving: Serving, changed: dict[str, str]) -> None:
    """A web page may send it to another site unasked."""
    with serving.connect() as bare:
        peer = Peer(bare)
        given = [*(dict(HEAD) | changed).items()]
        assert peer.status(peer.call(message(b"x"), head=given)) == "415"
    assert serving.messages == []


def test_an_answer_waits_for_the_peers_window(serving: Serving) -> None:
    with serving.connect() as bare:
        peer = Peer(bare, first_window=0)
        stream = peer.call(message(b"x"))
        until(lambda: serving.messages == [b"x"])
        peer.http.increment_flow_control_window(1000, stream)
        peer.flush()
        assert peer.status(stream) == "0"


def test_a_reset_call_costs_its_sender_the_answer(serving: Serving) -> None:
    """And the connection goes on."""
    with serving.connect() as bare:
        peer = Peer(bare)
        for body in (message(b"half", more=9), message(b"whole")):
            peer.http.reset_stream(peer.call(body, ends=body.endswith(b"whole")))
            peer.flush()
        assert peer.status(peer.call(message(b"next"))) == "0"
    assert serving.messages[-1] == b"next"
    assert b"half" not in serving.messages


def test_whoever_has_four_messages_worked_on_is_not_read(serving: Serving) -> None:
    """Pings that would end the connection stay unread until a message is answered."""
    with serving.connect() as busy, serving.connect() as other:
        peer = Peer(busy)
        streams = [peer.call(message(b"hold")) for _ in range(4)]
        until(lambda: serving.messages == [b"hold"] * 4)
        busy.sendall(frame(PING, 0, 0, bytes(8)) * 200)
        peer.replies = False  # bytes that the server leaves unread would reset what it sent
        another = Peer(other)
        assert another.status(another.call(message(b"release"))) == "0"
        assert peer.status(streams[0]) == "0"


@pytest.mark.parametrize(
    "sent",
    [
        b"".join(
            frame(HEADERS, END_HEADERS, stream, head()) + frame(RST_STREAM, 0, stream, bytes(4))
            for stream in range(1, 401, 2)
        ),
        frame(PING, 0, 0, bytes(8)) * 200,
        frame(HEADERS, END_HEADERS, 1, head()) + frame(0, 0, 1, b"") * 200,
    ],
    ids=["resets", "pings", "empty pieces"],
)
def test_frames_that_bring_nothing_forward_are_bounded(serving: Serving, sent: bytes) -> None:
    """Some hundred of them end the connection."""
    with serving.connect() as bare:
        peer = Peer(bare)
        assert peer.ended_by(sent) in (11, None)  # ENHANCE_YOUR_CALM, unless the end overtook it


@pytest.mark.slow
def test_calls_that_are_answered_make_up_for_resets(serving: Serving) -> None:
    """However many a busy connection has."""
    with serving.connect() as bare:
        peer = Peer(bare)
        for _ in range(150):
            peer.http.reset_stream(peer.call())
            assert peer.status(peer.call(message(b"x"))) == "0"


@pytest.mark.parametrize(
    "sent",
    [
        frame(HEADERS, 0, 1, head()) + frame(CONTINUATION, 0, 1, literal(b"x", b"y" * 8000)) * 40,
        frame(HEADERS, END_HEADERS, 1, head(*[(b"x-%d" % n, b"y" * 900) for n in range(80)])),
        frame(HEADERS, 0, 1, head()) + frame(CONTINUATION, 0, 1, b"") * 100,
    ],
    ids=["no end", "long", "empty"],
)
def test_a_head_may_have_64_kib(
    serving: Serving, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its length ends the connection, and not the time that it takes."""
    monkeypatch.setattr(grpc_connection._Phase.HEAD, "_value_", 10 * WAIT_S)
    with serving.connect() as bare:
        bare.sendall(begin())
        with contextlib.suppress(ConnectionError):
            bare.sendall(sent)
            while bare.recv(65_536):
                pass
    until(lambda: serving.held.count == 0)


def test_a_head_may_have_100_headers(serving: Serving) -> None:
    more = [(f"x-{number}", "y") for number in range(95)]
    with serving.connect() as bare:
        peer = Peer(bare)
        assert peer.status(peer.call(message(b"x"), head=HEAD + more[:94])) == "0"
        assert peer.status(peer.call(message(b"x"), head=HEAD + more)) == "8"


@pytest.mark.parametrize(
    ("phase", "sent"),
    [
        ("HEAD", [b""]),
        ("HEAD", [PREFACE[:10]]),
        ("HEAD", [begin(), frame(HEADERS, 0, 1, head())]),
        ("IDLE", [begin()]),
    ],
    ids=["nothing", "half a preface", "half a head", "no call"],
)
def test_whoever_falls_silent_is_disconnected(
    serving: Serving, phase: str, sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a time that only this kind of silence is shortened to."""
    monkeypatch.setattr(grpc_connection, "HEAD_WITHIN_S", 0.2)
    monkeypatch.setattr(grpc_connection._Phase[phase], "_value_", 0.2)
    with serving.connect() as bare, contextlib.suppress(ConnectionError):
        bare.sendall(sent[0])
        if sent[1:]:
            assert bare.recv(65_536)  # all before is read
            bare.sendall(sent[1])
        while bare.recv(65_536):
            pass


def test_a_late_message_is_refused_and_the_connection_goes_on(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_connection, "BODY_WITHIN_S", 0.2)
    with serving.connect() as bare:
        peer = Peer(bare)
        assert peer.status(peer.call(message(b"half", more=9), ends=False)) == "1"  # CANCELLED
        assert peer.status(peer.call(message(b"whole"))) == "0"


def test_the_oldest_goes_for_a_newcomer(serving: Serving) -> None:
    """Of one address, six may be."""
    with contextlib.ExitStack() as stack:
        bares = [stack.enter_context(serving.connect()) for _ in range(6)]
        until(lambda: serving.held.count == 6)
        newcomer = stack.enter_context(serving.connect())
        with contextlib.suppress(ConnectionResetError):
            assert bares[0].recv(1) == b""
        peer = Peer(newcomer)
        assert peer.status(peer.call(message(b"x"))) == "0"


@pytest.mark.slow
def test_half_messages_share_one_room(serving: Serving) -> None:
    """Others are not read meanwhile; who holds the room and stops, ends."""
    most = 0
    with contextlib.ExitStack() as stack:
        bares = [stack.enter_context(serving.connect()) for _ in range(5)]

        def hold(bare: socket.socket) -> None:
            """Send most of a message, and wait for the end of the connection."""
            with contextlib.suppress(ConnectionError):
                Export(bare, 30 * MIB).send(29 * MIB)
                while bare.recv(65_536):
                    pass

        with ThreadPoolExecutor(5) as pool:
            running = [pool.submit(hold, bare) for bare in bares]
            while not any(one.done() for one in running):
                most = max(most, serving.held.unfinished.held_bytes)
            assert [one.exception() for one in running if one.done()] == [None]
            for bare in bares:
                with contextlib.suppress(OSError):
                    bare.shutdown(socket.SHUT_RDWR)
    until(lambda: serving.held.unfinished.held_bytes == 0)
    assert MIB < most < (24 + 32) * MIB


def test_nobody_without_a_key_is_read(serve: Serve, database_url: str) -> None:
    """A call is refused by its head; its message need not be there."""
    with Store.open(database_url) as store:
        add_key(store, "app", Scope.INGEST)
    server = serve(database_url, env={"DRAFTGATE_REQUIRE_KEYS": "1"})
    host, port = server.grpc.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=WAIT_S) as bare:
        peer = Peer(bare)
        path = (":path", "/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        stream = peer.call(head=[*HEAD[:2], path, *HEAD[3:]])
        assert peer.status(stream) == "16"  # UNAUTHENTICATED


@pytest.mark.slow
def test_large_half_messages_do_not_fill_the_memory(serve: Serve, database_url: str) -> None:
    """Of forty that send 29 of 30 MB, those go that hold too much together."""
    server = serve(database_url)
    host, port = server.grpc.rsplit(":", 1)
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    most = 0

    def work() -> None:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port))) as bare:
            bare.settimeout(10)
            Export(bare, 30 * MIB).send(29 * MIB)
            bare.recv(1)

    with ThreadPoolExecutor(40) as pool:
        running = [pool.submit(work) for _ in range(40)]
        while sum(one.done() for one in running) < 5:
            most = max(most, process.memory_info().rss)
    assert most - before < 200 * MIB
    assert server.process.poll() is None
