"""The HTTP client of one engine: whole replies and streams of server-sent events."""

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import getproxies

import aiohttp

from engine_adapter.errors import GenerationError
from engine_adapter.transport import failures, stamped_socket
from engine_adapter.transport.deadlines import Deadlines, Timeouts
from engine_adapter.transport.event_stream import EventStream
from engine_adapter.transport.events import MAX_EVENT_BYTES
from engine_adapter.transport.exchanges import Exchange
from engine_adapter.transport.reader_thread import ReaderThread, ThreadReadResponse, is_stream
from engine_adapter.transport.reading_gaps import LoopGaps

_KEEP_ALIVE_S = 2.0
"""Shorter than any engine's keep-alive (uvicorn: 5 s): a POST on a connection that the engine is
closing cannot be retried, and would be counted as the engine's failure."""
_MAX_ERROR_BYTES = 1 << 16


class Reply(NamedTuple):
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:  # Any: whatever JSON the engine sent
        """Return the body's JSON; raises `GenerationError`."""
        try:
            return json.loads(self.body)
        except ValueError as exc:
            content_type = self.headers.get("content-type", "")
            if "json" not in content_type:
                raise failures.of_content_type(content_type, self.body, "the engine") from exc
            raise GenerationError("invalid_json", f"is not JSON: {self.body[:80]!r}") from exc


class HttpClient:
    """Sends requests to one engine, from one event loop."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        """Take the base URL of the engine's routes; open no connection yet."""
        self.url = url.rstrip("/")
        self._headers = {"accept-encoding": "identity", **(headers or {})}
        self._timeouts = timeouts or Timeouts()
        self._max_event_bytes = max_event_bytes
        self._session: aiohttp.ClientSession | None = None
        self._arrivals: ReaderThread | None = None
        self._loop_gaps: LoopGaps | None = None

    async def get(self, route: str) -> Reply:
        """Return the reply to a GET; `route` may also be an absolute URL.

        Raises `GenerationError` for a status other than 2xx.
        """
        return await self._whole("GET", route, None)

    async def post(self, route: str, body: Mapping[str, Any]) -> Reply:
        """Return the reply to a POST of JSON; raises as `get` does."""
        return await self._whole("POST", route, body)

    @asynccontextmanager
    async def stream(
        self, route: str, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[EventStream]:
        """POST JSON and yield the stream that answers it; raises `GenerationError`."""
        url = self._absolute(route)
        limits = Deadlines(url, self._timeouts)
        response, exchange = await self._request("POST", url, body, limits, headers, streams=True)
        try:
            await _require_success(response, limits)
            if not is_stream(response):
                content_type = response.headers.get("content-type", "")
                beginning = await limits.within(response.content.read(_MAX_ERROR_BYTES))
                raise failures.of_content_type(content_type, beginning, url)
            yield EventStream(response, exchange, limits, self._max_event_bytes)
        finally:
            response.release()  # closes the connection if the stream was not read to its end

    async def aclose(self) -> None:
        """Close the connections; safe to call twice."""
        if self._arrivals is not None:
            self._arrivals.close()
            self._arrivals = None
        if self._loop_gaps is not None:
            self._loop_gaps.close()
            self._loop_gaps = None
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _whole(self, method: str, route: str, body: Mapping[str, Any] | None) -> Reply:
        url = self._absolute(route)
        limits = Deadlines(url, self._timeouts)
        response, _ = await self._request(method, url, body, limits)
        try:
            await _require_success(response, limits)
            content = await limits.within(response.content.read())
            return Reply(response.status, response.headers, content)
        finally:
            response.release()

    async def _request(
        self,
        method: str,
        url: str,
        body: Mapping[str, Any] | None,
        limits: Deadlines,
        headers: Mapping[str, str] | None = None,
        *,
        streams: bool = False,
    ) -> tuple[aiohttp.ClientResponse, Exchange]:
        """Send a request; retry once if a reused connection is reset before an answer.

        llama.cpp closes the connection after each streamed answer although it announced keep-alive,
        so the next request may be sent before the close is seen.
        """
        self._open()
        arrivals = self._arrivals if streams else None
        exchange = Exchange(arrivals=arrivals, loop_gaps=self._loop_gaps)
        try:
            return await self._exchanged(exchange, method, url, body, limits, headers)
        except GenerationError as exc:
            if exc.error_type != failures.CONNECTION_RESET or not exchange.may_be_repeated:
                raise
        exchange = Exchange(arrivals=arrivals, loop_gaps=self._loop_gaps)
        return await self._exchanged(exchange, method, url, body, limits, headers)

    async def _exchanged(
        self,
        exchange: Exchange,
        method: str,
        url: str,
        body: Mapping[str, Any] | None,
        limits: Deadlines,
        headers: Mapping[str, str] | None,
    ) -> tuple[aiohttp.ClientResponse, Exchange]:
        token = stamped_socket.current.set(exchange)
        try:
            answering = self._open().request(
                method, url, json=body, headers=headers, allow_redirects=False
            )
            return await limits.within(answering), exchange
        finally:
            stamped_socket.current.reset(token)

    def _absolute(self, route: str) -> str:
        return route if route.startswith(("http://", "https://")) else self.url + route

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._arrivals = ReaderThread.start()
            self._loop_gaps = LoopGaps()
            connector = aiohttp.TCPConnector(
                limit=0,  # the schedule decides how many requests are in flight
                socket_factory=stamped_socket.make,
                keepalive_timeout=_KEEP_ALIVE_S,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                response_class=ThreadReadResponse,
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._timeouts.connect_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=_environment_has_proxies(),
            )
        return self._session


def _environment_has_proxies() -> bool:
    """Return whether the environment names proxies or a netrc file with credentials exists.

    Only then is `trust_env` set: with it, aiohttp reads both for each request, in two threads.
    """
    netrc = os.environ.get("NETRC") or Path("~", "_netrc" if os.name == "nt" else ".netrc")
    return bool({"http", "https"} & getproxies().keys()) or Path(netrc).expanduser().exists()


async def _require_success(response: aiohttp.ClientResponse, limits: Deadlines) -> None:
    if HTTPStatus(200) <= response.status < HTTPStatus(300):
        return
    body = await limits.within(response.content.read(_MAX_ERROR_BYTES))
    raise failures.of_status(response.status, body, limits.url, response.headers.get("retry-after"))
