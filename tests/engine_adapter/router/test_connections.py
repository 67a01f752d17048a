"""The connections to an engine that are at hand before a request needs them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from yarl import URL

from engine_adapter.router.http1 import connections as under_test
from engine_adapter.router.http1.connections import ConnectionPool


class Port:
    """A port that only counts who connects."""

    def __init__(self) -> None:
        self.readers: list[asyncio.StreamReader] = []
        self.writers: list[asyncio.StreamWriter] = []
        self._changed = asyncio.Condition()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.readers.append(reader)
        self.writers.append(writer)
        async with self._changed:
            self._changed.notify_all()

    async def has(self, number: int) -> None:
        """Wait for so many connections, and see that there are no more."""
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(lambda: len(self.readers) >= number)
        await asyncio.sleep(0.05)
        assert len(self.readers) == number


@asynccontextmanager
async def engine() -> AsyncIterator[tuple[ConnectionPool, Port]]:
    """Give connections, none of them made, to a port."""
    port = Port()
    async with await asyncio.start_server(port.accept, "127.0.0.1", 0) as server:
        number = server.sockets[0].getsockname()[1]
        connections = ConnectionPool(URL(f"http://127.0.0.1:{number}"), 20.0)
        try:
            yield connections, port
        finally:
            connections.close()
            for reader, writer in zip(port.readers, port.writers, strict=True):
                assert await reader.read() == b""
                writer.close()


def run(what: Callable[[ConnectionPool, Port], Awaitable[None]]) -> None:
    async def within() -> None:
        async with engine() as (connections, port):
            await what(connections, port)

    asyncio.run(within())


def test_one_request_makes_one_connection() -> None:
    """Nothing is made ahead for requests that come one by one."""

    async def ask(connections: ConnectionPool, port: Port) -> None:
        assert connections.acquire() is None
        made = await connections.open()
        await port.has(1)
        made.close()

    run(ask)


def test_a_burst_finds_connections_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as were needed just before the last; one that was used goes first."""
    monkeypatch.setattr(under_test, "_JUST_NOW_S", 60.0)

    async def ask(connections: ConnectionPool, port: Port) -> None:
        assert [connections.acquire() for _ in range(3)] == [None] * 3
        await port.has(2)
        used = await connections.open()
        connections.release(used)
        assert connections.acquire() is used
        ahead = connections.acquire()
        assert ahead.is_open
        assert ahead is not used
        await port.has(2 + 1 + 2)  # four were needed by now, and one is left
        for one in (used, ahead):
            one.close()

    run(ask)


def test_what_lies_there_too_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the engine does so, which a request could meet."""
    monkeypatch.setattr(under_test, "_JUST_NOW_S", 60.0)
    monkeypatch.setattr(under_test, "_KEEP_S", 0.2)

    async def ask(connections: ConnectionPool, port: Port) -> None:
        assert [connections.acquire() for _ in range(2)] == [None] * 2
        await port.has(1)
        assert await port.readers[0].read() == b""

    run(ask)
