"""Limits on a client's heads, bodies and connections, to the byte."""

import asyncio
import json
import re
import socket
import threading
import time
import tracemalloc
from contextlib import ExitStack

import pytest
import running_router
import wire_engine as wire
from running_router import FixedControl, Router, routing, wired
from waiting import until
from wire_engine import ASKED, CHUNKED, CHUNKS, LAST, chunk, sending

from engine_adapter.router.http1.client_request import ClientRequest
from engine_adapter.router.request_edit import is_quickly_parsed
from engine_adapter.router.settings import RouterLimits
from listening.open_connections import OpenConnections

HEAD_BYTES = 65_536
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
ANSWERING = sending(CHUNKED, CHUNKS + LAST)


def head_of(size: int) -> bytes:
    """Return a head of so many bytes."""
    begin, end = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Large: ", b"\r\n\r\n"
    return begin + b"x" * (size - len(begin) - len(end)) + end


def status_of(router: Router, *sent: bytes) -> int:
    """Return the status that is answered to bytes over a connection of their own."""
    with router.connected() as client:
        for part in sent:
            client.sendall(part)
        return int(client.recv(65536).split()[1])


@pytest.mark.parametrize("cut", [1, 50, 40_000, None])
def test_a_heads_bound_holds_to_the_byte(cut: int | None) -> None:
    """However it arrives; a byte more is refused with 431."""
    with routing() as router:
        for size, status in ((HEAD_BYTES, 200), (HEAD_BYTES + 1, 431), (100_000, 431)):
            head = head_of(size)
            assert status_of(router, head[:cut], head[cut:] if cut else b"") == status


def test_a_head_behind_another_request_has_the_same_bound() -> None:
    """Though both come at once."""
    with routing() as router, router.connected() as client:
        client.sendall(head_of(40) + head_of(HEAD_BYTES + 1))
        client.settimeout(20)
        received = b""
        while data := client.recv(65536):
            received += data
        assert re.findall(rb"HTTP/1\.1 (\d+)", received) == [b"200", b"431"]


def test_a_head_has_at_most_100_headers() -> None:
    """One more is refused with 431."""
    with routing() as router:
        for number, status in ((100, 200), (101, 431)):
            others = b"".join(b"X-%d: y\r\n" % one for one in range(number - 1))
            head = b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + others + b"\r\n"
            assert status_of(router, head) == status


@pytest.fixture
def longest_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Keep the processor time of the longest call that an event loop makes."""
    longest, run = [0.0], asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        since_s = time.thread_time()
        run(handle)
        longest[0] = max(longest[0], time.thread_time() - since_s)

    monkeypatch.setattr(asyncio.Handle, "_run", timed)
    monkeypatch.setattr(running_router, "new_loop", asyncio.SelectorEventLoop)
    return longest


NUMBER = 20_000_000
LARGE = {
    "an array of numbers": b"[" + b"1," * (NUMBER // 2) + b"1]",
    "many empty objects": b'{"messages":[' + b"{}," * 300_000 + b"{}]}",
    "one long text": b'{"messages":[{"content":"' + b"x" * NUMBER + b'"}]}',
}


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("case", sorted(LARGE))
def test_a_large_body_makes_no_stream_wait(case: str, longest_s: list[float]) -> None:
    """It passes to the baseline unread and is counted; no call takes the loop for long."""
    body, control = LARGE[case], FixedControl()
    with wired(ANSWERING, control=control) as (engine, router):
        with router.connected() as client:
            client.settimeout(120)
            client.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(body))
            client.sendall(body)
            assert client.recv(65536).startswith(b"HTTP/1.1 200")
        assert router.counted("unread_requests") == {"": 1}
    assert control.asked == []
    assert engine.requests[0].endswith(body)
    assert longest_s[0] < 0.05


@pytest.mark.slow
@pytest.mark.alone
def test_many_small_chunks_make_no_stream_wait(longest_s: list[float]) -> None:
    """Two bytes each; the body arrives whole."""
    size = 1_000_000
    frames = chunk(b"xy") * (size // 2) + LAST
    with wired(ANSWERING) as (engine, router), router.connected() as client:
        client.settimeout(120)
        client.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n" + frames)
        assert client.recv(65536).startswith(b"HTTP/1.1 200")
    assert engine.requests[0].partition(b"\r\n\r\n")[2] == b"xy" * (size // 2)
    assert longest_s[0] < 0.05


def test_pieces_of_two_bytes_take_little_more_than_the_body() -> None:
    """They are joined as they come, and none is lost."""
    request = ClientRequest(
        method="POST", target="/", is_http_1_1=True, keeps_alive=True, raw_headers=()
    )
    size = 200_000
    tracemalloc.start()
    for number in range(size // 2):
        request.add(b"%02d" % (number % 100))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2 * size
    assert request.body() == b"".join(b"%02d" % (number % 100) for number in range(size // 2))


def test_what_is_parsed_quickly_is_told_by_its_structure() -> None:
    """Long texts, code and images are; many values are not, whatever their kind."""
    long = [
        {"messages": [{"role": "user", "content": 'say "hi", [1,2], {}\n' * 50_000}]},
        {"messages": [{"content": [{"image_url": {"url": "data:" + "A" * 1_000_000}}]}]},
        {"messages": [{"role": "user", "content": "a back\\slash\\"}] * 1_000},
    ]
    for document in long:
        assert is_quickly_parsed(json.dumps(document).encode())
    for values in ("[],", "1,", "{},", '"",', '"a":1,', "1e9,", '"\\\\",'):
        assert not is_quickly_parsed(b"[" + values.encode() * 100_000 + b"1]")


def test_the_connection_that_was_waited_for_longest_makes_room() -> None:
    """Of an address that has too many; one whose answer is on its way stays."""
    may_end = threading.Event()

    def answer(peer: wire.Peer, request: bytes) -> None:
        sending(CHUNKED)(peer, request)
        assert may_end.wait(60)
        peer.send(CHUNKS + LAST)

    limits = RouterLimits(connections=8, connections_per_address=4)
    with (
        wire.running(answer) as engine,
        routing(engine.url, limits=limits) as router,
        ExitStack() as stack,
    ):

        def connected(sent: bytes) -> socket.socket:
            client = stack.enter_context(router.connected())
            client.sendall(sent)
            return client

        streaming = connected(ASKED)
        until(lambda: bool(engine.requests))
        idle = connected(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert idle.recv(65536).endswith(b"ok")
        half = connected(b"GET /healthz HT")
        silent = connected(b"")
        newest = [connected(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(3)]
        for client in newest:
            assert client.recv(65536).endswith(b"ok")
        for client in (idle, half, silent):
            assert is_closed(client)
        may_end.set()
        received = b""
        while LAST not in received:
            received += streaming.recv(65536)


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


class Waiting:
    """A connection, as far as the others are concerned."""

    def __init__(self, address: str, *, waits: bool = True) -> None:
        self.address, self.waits_for_peer = address, waits
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_the_address_with_the_most_connections_makes_room() -> None:
    """Of its own, the one that was waited for longest; an IPv6 network counts as one address."""
    every: OpenConnections[Waiting] = OpenConnections(4, 3)
    other = Waiting("192.0.2.1")
    busy, old = Waiting("2001:db8::1", waits=False), Waiting("2001:db8::2")
    young = Waiting("2001:db8::3")
    newest = Waiting("198.51.100.1")
    for one in (other, busy, young, old):
        every.add(one)
    every.restart_wait(young)
    every.add(newest)
    assert [one.aborted for one in (other, busy, old, young, newest)] == [
        False,
        False,
        True,
        False,
        False,
    ]
    every.discard(old)
    assert (len(every), set(every)) == (4, {other, busy, young, newest})


def test_a_newcomer_goes_if_all_others_are_being_answered() -> None:
    """An answer that is on its way is not cut for it."""
    every: OpenConnections[Waiting] = OpenConnections(1, 1)
    busy, newest = Waiting("192.0.2.1", waits=False), Waiting("192.0.2.1")
    every.add(busy)
    every.add(newest)
    assert (busy.aborted, newest.aborted) == (False, True)
