"""Answers that are left, cancelled or closed while the reading thread has their connection."""

import asyncio
import gc
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import psutil
import pytest
from segment_server import chunk, counting, serving
from waiting import until
from wire_engine import CHUNKED, LAST

from engine_adapter.errors import GenerationError
from engine_adapter.transport import EventStream, HttpClient, Timeouts

pytest.importorskip("engine_adapter.transport._arrivals")

ROUTE = "/chat/completions"
LIMITS = Timeouts(connect_s=10, first_byte_s=60, idle_s=60, total_s=120)


async def read(client: HttpClient) -> None:
    """Read one answer."""
    async with client.stream(ROUTE, {}) as opened:
        async for _ in opened.events():
            pass


async def _left_early(client: HttpClient) -> AsyncGenerator[int, None]:
    """Yield, within streams that go on, the numbers of their sockets; then leave each."""
    while True:
        async with client.stream(ROUTE, {}) as opened:
            events = opened.events()
            await anext(events)
            yield _socket_of(opened)
            await events.aclose()


def _socket_of(opened: EventStream) -> int:
    found = opened._exchange.socket  # its number is what the test is about
    return found.fileno()


@pytest.mark.slow
def test_a_file_descriptor_that_is_used_again_is_left_alone() -> None:
    """Whoever gets a left connection's number at once reads all of its own bytes."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED)
        while True:
            connection.sendall(chunk("a"))
            time.sleep(0.0005)

    async def scenario(url: str) -> int:
        client = HttpClient(url, timeouts=LIMITS)
        reused = 0
        left = _left_early(client)
        for _ in range(60):
            number = await anext(left)
            pairs: list[socket.socket] = []
            task = asyncio.create_task(anext(left))
            for _ in range(20):
                await asyncio.sleep(0)
                ours, theirs = socket.socketpair()
                pairs += [ours, theirs]
                for one, other in ((ours, theirs), (theirs, ours)):
                    one.sendall(b"x" * 1000)
                    if other.fileno() == number:
                        reused += 1
                        await asyncio.sleep(0.001)
                    assert len(other.recv(2000)) == 1000
            await task
            for one in pairs:
                one.close()
        await left.aclose()
        await client.aclose()
        return reused

    with serving(answer) as server:
        assert asyncio.run(scenario(server.url)) > 10


def _is_left(opened: EventStream, client: HttpClient) -> bool:
    return _socket_of(opened) == -1 and not client._arrivals._takeovers


def test_a_connection_is_not_closed_while_the_thread_reads_it() -> None:
    """Whoever closes it, be it asyncio: the thread has left the socket by then."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED)
        while True:
            connection.sendall(chunk("a"))
            time.sleep(0.0005)

    async def abort(client: HttpClient) -> None:
        async with client.stream(ROUTE, {}) as opened:
            aborted = False
            async for _ in opened.events():
                arrivals, connection = client._arrivals, opened._response.connection
                if aborted or connection is None or arrivals is None:
                    continue
                assert len(arrivals._takeovers) == 1
                connection.transport.abort()
                await asyncio.to_thread(until, lambda: _is_left(opened, client))
                aborted = True

    async def scenario(url: str) -> str:
        client = HttpClient(url, timeouts=LIMITS)
        with pytest.raises(GenerationError) as caught:
            await abort(client)
        await client.aclose()
        return caught.value.error_type

    with serving(answer) as server:
        assert asyncio.run(scenario(server.url)) == "stream_truncated"


@pytest.mark.slow
def test_a_task_may_be_cancelled_at_any_moment() -> None:
    """Nothing is left behind: no connection, no thread, no file descriptor."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED)
        for _ in range(20):
            connection.sendall(chunk("a"))
            time.sleep(0.002)
        connection.sendall(LAST)

    async def scenario(url: str) -> None:
        before = _held()
        client = HttpClient(url, timeouts=LIMITS)
        for number in range(200):
            task = asyncio.create_task(read(client))
            await asyncio.sleep(number / 200 * 0.06)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await client.aclose()
        await asyncio.to_thread(until, lambda: _held() == before)

    with serving(answer) as server:
        asyncio.run(scenario(server.url))


def _held() -> tuple[int, int]:
    """Return how many sockets of clients this process has, and threads that read them."""
    process = psutil.Process()
    clients = [one for one in process.net_connections("tcp") if one.raddr and one.status != "NONE"]
    reading = sum(
        "dg-arrivals" in (task / "comm").read_text() for task in Path("/proc/self/task").iterdir()
    )
    return len(clients), reading


def test_a_client_that_is_closed_ends_its_streams() -> None:
    """Whoever reads learns of it, and the thread is gone."""
    closed, begun = threading.Event(), asyncio.Event()

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED + chunk("a"))
        closed.wait()

    async def reading(client: HttpClient) -> None:
        async with client.stream(ROUTE, {}) as opened:
            async for _ in opened.events():
                begun.set()

    async def scenario(url: str) -> str:
        client = HttpClient(url, timeouts=LIMITS)
        task = asyncio.create_task(reading(client))
        await begun.wait()
        await client.aclose()
        with pytest.raises(GenerationError) as caught:
            await task
        closed.set()
        return caught.value.error_type

    with serving(answer) as server:
        assert asyncio.run(scenario(server.url)) == "stream_truncated"


@pytest.mark.slow
def test_thousands_of_answers_leave_nothing_behind() -> None:
    """Memory, threads and file descriptors are as many behind 4,000 answers as behind 1,000."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED + chunk("a"))
        for _ in range(3):
            connection.sendall(chunk("b" * 500))
        connection.sendall(LAST)

    async def scenario(url: str) -> list[tuple[int, int, int]]:
        process = psutil.Process()
        client = HttpClient(url, timeouts=LIMITS)
        seen = []
        for _ in range(4):
            for _ in range(1000):
                await read(client)
            gc.collect()
            seen.append((process.memory_info().rss, process.num_threads(), process.num_fds()))
        await client.aclose()
        return seen

    with serving(answer) as server:
        first, *_, last = asyncio.run(scenario(server.url))
    assert last[1:] == first[1:]
    assert last[0] - first[0] < 4 << 20


FORKING = """
import asyncio, os, sys
from engine_adapter.transport import HttpClient

async def main():
    client = HttpClient(sys.argv[1])
    texts = []
    async with client.stream("/chat/completions", {}) as opened:
        async for event in opened.events():
            texts.append(event.data)
            if len(texts) == 1:
                child = os.fork()
                if child == 0:
                    found = opened._exchange.socket
                    found.close()
                    client._arrivals._reader.close()
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
    if sys.argv[2] == "close":
        await client.aclose()
    print(len(texts))

asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["close", "leave"])
def test_a_fork_in_the_middle_and_an_end_without_close(end: str) -> None:
    """A child closes what it has and ends; the parent reads on, and may end with all open."""
    with serving(counting(100)) as server:
        done = subprocess.run(
            [sys.executable, "-W", "ignore::ResourceWarning", "-c", FORKING, server.url, end],
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, "100\n"), done.stderr
