"""One engine over HTTP/1.1: requests are sent as they came in, responses returned as bytes."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import aiohttp
from yarl import URL

from engine_adapter.errors import GenerationError
from engine_adapter.router.http1.connections import ConnectionPool
from engine_adapter.router.http1.engine_connection import EngineConnection
from engine_adapter.router.http1.engine_response import EngineResponse
from engine_adapter.router.transport import EngineRequest
from engine_adapter.transport import Deadlines, Timeouts
from engine_adapter.transport.failures import CONNECTION_RESET

_IN_ONE_WRITE_BYTES: Final = 1 << 16
_WITHOUT_BODY: Final = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))


class EngineTransport:
    """Sends requests to one engine, from one event loop."""

    def __init__(self, url: str, api_key: str | None, timeouts: Timeouts) -> None:
        """Open no connection yet."""
        self.begun = 0
        """Number of requests sent, including mirrored ones and retries."""
        self.last_begun_unix_ns: int | None = None
        self._url = url
        self._timeouts = timeouts
        base = URL(url.rstrip("/"))
        self._base_path = "" if base.raw_path == "/" else base.raw_path
        self._connections = ConnectionPool(base.with_user(None), timeouts.connect_s)
        self._own_headers, self._has_key = _own_headers(base, api_key)

    async def handle_request(self, request: EngineRequest) -> EngineResponse:
        """Return the response once its head has come; raises `GenerationError`.

        If the connection is reset before any response arrived, the request is retried once over a
        new connection: the engine was closing the old one, or has just restarted.
        """
        parts, bodyless = self._parts(request), request.method == "HEAD"
        deadlines = Deadlines(self._url, self._timeouts)
        kept = self._connections.acquire()
        try:
            return await self._exchange(kept, parts, deadlines, bodyless=bodyless, retries=0)
        except GenerationError as exc:
            if exc.error_type != CONNECTION_RESET:
                raise
        return await self._exchange(None, parts, deadlines, bodyless=bodyless, retries=1)

    async def close(self) -> None:
        """Close the connections; safe to call twice."""
        self._connections.close()
        await asyncio.sleep(0)  # the loop closes their sockets in its next round

    async def _exchange(
        self,
        connection: EngineConnection | None,
        parts: Sequence[bytes],
        deadlines: Deadlines,
        *,
        bodyless: bool,
        retries: int,
    ) -> EngineResponse:
        self.begun += 1
        self.last_begun_unix_ns = time.time_ns()
        if connection is None:
            await asyncio.sleep(0)  # asyncio.timeout needs a task; after this wait we are in one
            connection = await deadlines.within(self._connections.open())
        connection.send(*parts, bodyless=bodyless)
        response = EngineResponse(self._connections, connection, deadlines, retries)
        await response.begin()
        return response

    def _parts(self, request: EngineRequest) -> Sequence[bytes]:
        """Return the request's bytes in one piece, or head and body apart if the body is large."""
        length = sum(map(len, request.body))
        target = f"{request.method} {self._base_path}{request.target} HTTP/1.1\r\n"
        lines = [target.encode("utf-8", "surrogateescape"), self._own_headers]
        lines += [
            b"%b: %b\r\n" % (name, value)
            for name, value in request.headers
            if not self._has_key or name.lower() != b"authorization"
        ]
        if length or request.method not in _WITHOUT_BODY:
            lines.append(b"Content-Length: %d\r\n" % length)
        lines.append(b"\r\n")
        if length > _IN_ONE_WRITE_BYTES:
            return (b"".join(lines), *request.body)
        return (b"".join([*lines, *request.body]),)


def _own_headers(url: URL, key: str | None) -> tuple[bytes, bool]:
    """Return the header lines that every request gets, and whether they hold a key."""
    authorization = None if key is None else f"Bearer {key}"
    if authorization is None and url.user is not None:
        authorization = aiohttp.BasicAuth(url.user, url.password or "").encode()
    if authorization is not None and not authorization.isprintable():
        raise ValueError("a key of an upstream holds a line end or another control character")
    lines = f"Host: {url.host_port_subcomponent}\r\nAccept-Encoding: identity\r\n"
    if authorization is not None:
        lines += f"Authorization: {authorization}\r\n"
    return lines.encode(), authorization is not None
