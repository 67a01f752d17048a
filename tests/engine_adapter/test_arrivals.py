"""Answers that the reading thread takes from real sockets: whole, cut, broken, and many at once."""

import asyncio
import socket
import struct
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from itertools import pairwise

import pytest
import scripted_server
from scripted_server import Route, chat
from segment_server import chunk, serving
from wire_engine import CHUNKED, LAST

from engine_adapter.errors import GenerationError
from engine_adapter.transport import Event, HttpClient, Timeouts

pytest.importorskip("engine_adapter.transport._arrivals")

ROUTE = "/chat/completions"
LIMITS = Timeouts(connect_s=10, first_byte_s=60, idle_s=60, total_s=120)


async def read(client: HttpClient, into: list[Event]) -> None:
    """Read one answer's events, those before a failure included."""
    async with client.stream(ROUTE, {}) as opened:
        async for event in opened.events():
            into.append(event)  # noqa: PERF401  # kept where the next one fails


async def many(url: str, requests: int, **settings: int) -> list[list[str]]:
    """Return the texts of answers, asked one after another."""
    found: list[list[Event]] = [[] for _ in range(requests)]
    async with aclosing(HttpClient(url, timeouts=LIMITS, **settings)) as client:
        for into in found:
            await read(client, into)
    return [[event.data for event in into] for into in found]


def two_words(connection: socket.socket) -> None:
    """Send the beginning of an answer in two pieces."""
    connection.sendall(CHUNKED + chunk("a"))
    time.sleep(0.05)
    connection.sendall(chunk("b"))


def broken(answer: Callable[[socket.socket], None]) -> tuple[list[str], GenerationError]:
    """Return what came of an answer before its failure."""
    found: list[Event] = []

    async def scenario(url: str) -> None:
        async with aclosing(HttpClient(url, timeouts=LIMITS)) as client:
            await read(client, found)

    with serving(answer) as server, pytest.raises(GenerationError) as caught:
        asyncio.run(scenario(server.url))
    return [event.data for event in found], caught.value


@pytest.mark.parametrize("after_s", [0.02, 0.3])
def test_pieces_that_come_while_the_loop_stands_still_keep_their_own_times(
    after_s: float,
) -> None:
    """From the request's sending or from the middle of its answer on: each stamp is its chunk's."""

    async def busy(server: scripted_server.Server) -> list[float]:
        async with aclosing(HttpClient(server.url, timeouts=LIMITS)) as client:
            async with client.stream(ROUTE, {}) as opened:  # so that the next one has a connection
                assert [event async for event in opened.events()]
            asyncio.get_running_loop().call_later(after_s, time.sleep, 1.5)
            async with client.stream(ROUTE, {}) as opened:
                stamps = [event.at_s async for event in opened.events() if '"word ' in event.data]
        return stamps

    words = [f"word {number}" for number in range(10)]
    reply = chat(words, gap_s=0.08)
    with scripted_server.running(Route(replace(reply, steps=reply.steps[1:]))) as server:
        stamps = asyncio.run(busy(server))
        written = server.log()[1].written_s[:10]
    assert len(stamps) == 10
    assert all(at >= wrote for at, wrote in zip(stamps, written, strict=True))
    assert all(at < later for at, later in zip(stamps, written[1:], strict=False))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, 100_000])
def test_wherever_segments_are_cut_the_events_are_the_same(size: int) -> None:
    """The head, the chunks' sizes, the events and the last chunk may be cut anywhere."""
    texts = [f"text {number}" for number in range(20)]
    whole = CHUNKED + b"".join(map(chunk, texts)) + chunk("a", "b") + LAST

    def answer(connection: socket.socket) -> None:
        for start in range(0, len(whole), size):
            connection.sendall(whole[start : start + size])
            if size < 64:
                time.sleep(0.0002)

    with serving(answer) as server:
        assert asyncio.run(many(server.url, 3)) == [[*texts, "a", "b"]] * 3
        assert len(server.peers) == 1


def test_stamps_are_in_order_and_lie_in_the_past() -> None:
    """Of events in pieces that follow each other closely none is before its predecessor."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED)
        for number in range(2000):
            connection.sendall(chunk(str(number)))
        connection.sendall(LAST)

    found: list[Event] = []

    async def scenario(url: str) -> float:
        async with aclosing(HttpClient(url, timeouts=LIMITS)) as client:
            await read(client, found)
        return time.perf_counter()

    with serving(answer) as server:
        before_s = time.perf_counter()
        after_s = asyncio.run(scenario(server.url))
    assert [event.data for event in found] == [str(number) for number in range(2000)]
    assert all(earlier.at_s <= later.at_s for earlier, later in pairwise(found))
    assert before_s <= found[0].at_s
    assert found[-1].at_s <= after_s


def test_an_event_may_be_large() -> None:
    """10 MB in one event, then little ones: more than the thread holds at once."""
    large = "x" * (10 << 20)

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED + chunk("a") + chunk(large) + chunk("b") + LAST)

    with serving(answer) as server:
        found = asyncio.run(many(server.url, 2, max_event_bytes=16 << 20))
        assert len(server.peers) == 1
    assert found == [["a", large, "b"]] * 2


def test_an_answer_may_have_a_length() -> None:
    """A body of a declared length ends there, and its connection is used again."""
    body = b"".join(b"data: %d\n\n" % number for number in range(50))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"

    def answer(connection: socket.socket) -> None:
        connection.sendall(head % len(body) + body[:100])
        for start in range(100, len(body), 40):
            time.sleep(0.001)
            connection.sendall(body[start : start + 40])

    with serving(answer) as server:
        found = asyncio.run(many(server.url, 5))
        assert len(server.peers) == 1
    assert found == [[str(number) for number in range(50)]] * 5


def test_an_answer_may_end_with_its_connection() -> None:
    """Without a length the connection's end is the answer's."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: a\n\n")
        time.sleep(0.02)
        connection.sendall(b"data: b\n\n")
        connection.close()

    with serving(answer) as server:
        assert asyncio.run(many(server.url, 3)) == [["a", "b"]] * 3


def test_a_reset_in_the_middle_is_told_behind_what_came() -> None:
    """The reason stands in the failure though the thread was told of it, and Python was not."""

    def answer(connection: socket.socket) -> None:
        two_words(connection)
        time.sleep(0.05)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    texts, error = broken(answer)
    assert texts == ["a", "b"]
    assert error.error_type == "stream_truncated"
    assert "reset by peer" in str(error)


def test_an_end_without_the_last_chunk_is_told_behind_what_came() -> None:
    """A server that only closes has not finished its answer."""

    def answer(connection: socket.socket) -> None:
        two_words(connection)
        connection.close()

    texts, error = broken(answer)
    assert (texts, error.error_type) == (["a", "b"], "stream_truncated")


def test_what_is_not_chunked_as_announced_is_refused() -> None:
    """Bytes that are no chunk break the answer off, while more come behind them."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED + chunk("a"))
        time.sleep(0.05)
        for _ in range(100):
            connection.sendall(b"no chunk\r\n")

    texts, error = broken(answer)
    assert (texts, error.error_type) == (["a"], "stream_truncated")


def test_three_hundred_streams_at_once() -> None:
    """Every chunk of each arrives, with stamps in order."""
    words = [f"word {number} " for number in range(20)]

    async def scenario(url: str) -> list[list[Event]]:
        async with aclosing(HttpClient(url, timeouts=LIMITS)) as client:
            found: list[list[Event]] = [[] for _ in range(300)]
            async with asyncio.TaskGroup() as group:
                for into in found:
                    group.create_task(read(client, into))
        return found

    with scripted_server.running(Route(chat(words, ttft_s=0.3, gap_s=0.05))) as server:
        answers = asyncio.run(scenario(server.url))
    for events in answers:
        assert len(events) == len(words) + 4
        assert events[-1].data == "[DONE]"
        assert all(earlier.at_s <= later.at_s for earlier, later in pairwise(events))
