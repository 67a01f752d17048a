"""Any bytes in any pieces: who is let in leaves once, and what is unclear is the last."""

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_adapter.errors import RefusedRequestError
from engine_adapter.router.deferred_work import DeferredWork
from engine_adapter.router.http1 import client_connection
from engine_adapter.router.http1.client_answer import ClientAnswer
from engine_adapter.router.http1.client_connection import ClientConnection
from engine_adapter.router.http1.client_request import ClientRequest
from listening.open_connections import OpenConnections

BODY = b'{"stream":true}'
FRAGMENTS = (
    b"GET /now HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /later HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /refused HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n" + BODY,
    b"POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n" + BODY,
    b"POST /now HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 15\r\n\r\n",
    b"POST /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + b"x" * 200,
    b"GET /now HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    b"GET /now HTTP/1.0\r\n\r\n",
    b"f\r\n" + BODY + b"\r\n",
    b"0\r\n\r\n",
    b"\r\n",
    b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    BODY,
    b"\x00",
)


class Transport:
    """A transport that records writes, and closes as asyncio's transports do."""

    def __init__(self) -> None:
        self.written = b""
        self.closing = False

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else self

    def setsockopt(self, *_: int) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: bytes) -> None:
        assert not self.closing
        self.written += data

    def close(self) -> None:
        self.closing = True

    def write_eof(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Counting:
    """A handler that answers at once, later, or not at all, by the path."""

    def __init__(self) -> None:
        self.inside = 0
        self.begun: list[bytes] = []

    def admit(self, request: ClientRequest) -> None:
        if request.path == "/refused":
            raise RefusedRequestError(404, "unknown_url", "no such route")
        self.inside += 1

    def refuse(self, refused: RefusedRequestError, answer: ClientAnswer) -> None:
        answer.whole(refused.status, (), b"refused")

    async def answer(self, request: ClientRequest, answer: ClientAnswer) -> None:
        self.begun.append(request.body())
        if request.path != "/now":
            await asyncio.sleep(0)
        answer.whole(200, (), b"now")

    def finish(self, answer: ClientAnswer | None) -> None:
        del answer
        self.inside -= 1
        assert self.inside >= 0


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=20), max_size=8),
    st.lists(st.integers(1, 120), min_size=1, max_size=8),
    st.booleans(),
)
def test_who_is_admitted_finishes_once(
    fragments: list[bytes], sizes: list[int], patient: bool
) -> None:
    """However the connection ends; and nothing is written behind a connection that closes."""
    asyncio.run(_play(b"".join(fragments), sizes, patient=patient))


def test_a_piece_that_takes_long_is_parsed_between_others_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many small chunks in one piece: the event loop turns before all are parsed."""
    monkeypatch.setattr(client_connection, "_READ_S", -1.0)  # every slice takes too long
    asyncio.run(_parse_between())


async def _parse_between() -> None:
    body, turns = b"xy" * 20_000, 0
    door = Counting()
    connection = ClientConnection(
        door, len(body), OpenConnections(8, 8), DeferredWork(), logging.getLogger("test")
    )
    connection.connection_made(Transport())  # type: ignore[arg-type]  # enough of one
    head = b"POST /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection.data_received(head + b"2\r\nxy\r\n" * (len(body) // 2) + b"0\r\n\r\n")
    while not door.begun:
        await asyncio.sleep(0)
        turns += 1
    assert turns > 10
    assert door.begun == [body]
    connection.connection_lost(None)


async def _play(data: bytes, sizes: list[int], *, patient: bool) -> None:
    door, transport = Counting(), Transport()
    connections: OpenConnections[ClientConnection] = OpenConnections(8, 8)
    connection = ClientConnection(door, 100, connections, DeferredWork(), logging.getLogger("test"))
    connection.connection_made(transport)  # type: ignore[arg-type]  # enough of one
    at = turn = 0
    while at < len(data) and not transport.closing:
        size = sizes[turn % len(sizes)]
        connection.data_received(data[at : at + size])
        at, turn = at + size, turn + 1
        if patient:
            await asyncio.sleep(0)
    if patient:
        for _ in range(20):
            await asyncio.sleep(0)
        assert door.inside <= 1  # a request that is not whole
    connection.connection_lost(None)
    await asyncio.wait_for(connection.closed, 20)
    assert door.inside == 0
    assert list(connections) == []
    assert all(body in (b"", BODY) or len(body) <= 100 for body in door.begun)
    answers = transport.written.count(b"HTTP/1.1 ") - transport.written.count(b" 100 Continue")
    assert answers >= len(door.begun) - (0 if patient else 1)
