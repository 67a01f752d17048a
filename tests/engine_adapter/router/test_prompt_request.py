"""Requests that leave at once, or whose bodies the socket does not take whole, or that are cut."""

import asyncio
import io
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from engine_adapter.router.prompt_request import PromptRequest

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with the number of bytes of the body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    await asyncio.sleep(0)
    body = await reader.readexactly(length)
    said = str(len(body)).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said))
    await writer.drain()
    writer.close()


async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read the head and nothing more, until the client goes."""
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(0.2)
    finally:
        writer.transport.abort()


async def post(answer: Answer, size: int) -> bytes:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = "http://{}:{}/".format(*server.sockets[0].getsockname()[:2])
    try:
        async with (
            aiohttp.ClientSession(request_class=PromptRequest) as session,
            session.post(url, data=io.BytesIO(b"x" * size)) as said,
        ):
            return await said.read()
    finally:
        server.close()


@pytest.mark.parametrize("size", [0, 10, 1 << 16, 1 << 24])
def test_a_body_arrives_whole_whatever_its_size(size: int) -> None:
    """Also one for which the writing has to wait until the server has read some of it."""
    assert asyncio.run(post(counted, size)) == str(size).encode()


def test_an_engine_that_reads_no_body_ends_the_request() -> None:
    """A write that waits is told of the connection's end."""
    with pytest.raises(aiohttp.ClientError):
        asyncio.run(post(deaf, 1 << 26))


def test_a_cancelled_request_stops_writing() -> None:
    """So does one whose client has left."""

    async def cancelled() -> None:
        try:
            async with asyncio.timeout(0.1):
                await post(deaf, 1 << 26)
        finally:
            await asyncio.sleep(0.3)  # the server lets go, too

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())
