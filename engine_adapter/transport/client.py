"""One engine's HTTP: requests that are answered whole, and streams of server-sent events."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, closing
from http import HTTPStatus
from typing import Any, NamedTuple

import aiohttp

from engine_adapter.errors import GenerationError
from engine_adapter.transport import failures, stamped_socket
from engine_adapter.transport.deadlines import Deadlines, TimedBody, Timeouts
from engine_adapter.transport.events import MAX_EVENT_BYTES, Event, EventDecoder
from engine_adapter.transport.stamped_socket import Exchange

_KEEP_ALIVE_S = 2.0
"""Shorter than any engine's (uvicorn: 5 s): a POST on a connection that the engine is just closing
cannot be sent again, and would be counted as the engine's failure."""
_MAX_ERROR_BYTES = 1 << 16


class Reply(NamedTuple):
    """An answer that was read whole."""

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


class JsonEvent(NamedTuple):
    """One event of a stream, decoded."""

    at_s: float
    """As of `Event`: before anything was parsed."""
    body: dict[str, Any]  # Any: whatever JSON the engine sent
    name: str | None = None


class EventStream:
    """A stream that has begun: its status was 2xx and its type fits."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        exchange: Exchange,
        limits: Deadlines,
        max_event_bytes: int,
    ) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.sent_s = exchange.sent_s
        """When the request's first byte left, by `time.perf_counter`; `None` where not known."""
        self._response = response
        self._exchange = exchange
        self._limits = limits
        self._max_event_bytes = max_event_bytes

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield the events as they arrive; raises `GenerationError`."""
        decoder = EventDecoder(self._max_event_bytes)
        body = TimedBody(self._response.content, self._limits)
        with closing(body):
            while data := await body.read():
                at_s = self._exchange.received_s()
                for event in decoder.feed(data, at_s):
                    yield event
        if decoder.pending:
            raise GenerationError(
                "stream_truncated",
                f"{self._limits.url}: the stream ended within an event: {decoder.pending[:80]!r}",
            )

    async def objects(self, *, until_done: bool = True) -> AsyncGenerator[JsonEvent, None]:
        """Yield the events' JSON objects up to `[DONE]`.

        Raises `GenerationError` for an event that is no JSON object, for one that reports an
        error, and with `until_done` for a stream that ends without `[DONE]`.
        """
        url = self._limits.url
        async with aclosing(self.events()) as events:
            async for event in events:
                if event.data == "[DONE]":
                    return
                body = _object(event, url)
                if event.name == "error" or body.get("error"):
                    raise failures.of_error_event(body, url)
                yield JsonEvent(event.at_s, body, event.name)
        if until_done:
            raise GenerationError(
                "stream_truncated", f"{url}: the stream ended without `data: [DONE]`"
            )


def _object(event: Event, url: str) -> dict[str, Any]:
    try:
        body = json.loads(event.data)
    except ValueError as exc:
        raise GenerationError(
            "invalid_json", f"{url}: an event is not JSON: {event.data[:80]!r}"
        ) from exc
    if not isinstance(body, dict):
        raise GenerationError(
            "invalid_json", f"{url}: an event is {type(body).__name__}; wanted an object"
        )
    return body


class HttpClient:
    """Speaks to one engine, from one event loop."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        """Speak to the engine whose routes begin with `url`; nothing is connected yet."""
        self.url = url.rstrip("/")
        self._headers = {"accept-encoding": "identity", **(headers or {})}
        self._timeouts = timeouts or Timeouts()
        self._max_event_bytes = max_event_bytes
        self._session: aiohttp.ClientSession | None = None

    async def get(self, route: str) -> Reply:
        """Return the answer to a GET; a route that begins with http:// is taken whole.

        Raises `GenerationError` for an answer other than 2xx.
        """
        return await self._whole("GET", route, None)

    async def post(self, route: str, body: Mapping[str, Any]) -> Reply:
        """Return the answer to a POST of JSON; raises as `get` does."""
        return await self._whole("POST", route, body)

    @asynccontextmanager
    async def stream(
        self, route: str, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[EventStream]:
        """POST JSON and give the stream that answers it; raises `GenerationError`."""
        url = self._absolute(route)
        limits = Deadlines(url, self._timeouts)
        exchange = Exchange()
        response = await self._request("POST", url, body, limits, exchange, headers)
        try:
            await _require_success(response, limits)
            content_type = response.headers.get("content-type", "")
            if not content_type.startswith("text/event-stream"):
                beginning = await limits.within(response.content.read(_MAX_ERROR_BYTES))
                raise failures.of_content_type(content_type, beginning, url)
            yield EventStream(response, exchange, limits, self._max_event_bytes)
        finally:
            response.release()  # a stream that was not read to its end closes its connection

    async def close(self) -> None:
        """Close the connections; safe to call twice."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _whole(self, method: str, route: str, body: Mapping[str, Any] | None) -> Reply:
        url = self._absolute(route)
        limits = Deadlines(url, self._timeouts)
        response = await self._request(method, url, body, limits, Exchange())
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
        exchange: Exchange,
        headers: Mapping[str, str] | None = None,
    ) -> aiohttp.ClientResponse:
        token = stamped_socket.current.set(exchange)
        try:
            return await limits.within(
                self._open().request(method, url, json=body, headers=headers, allow_redirects=False)
            )
        finally:
            stamped_socket.current.reset(token)

    def _absolute(self, route: str) -> str:
        return route if route.startswith(("http://", "https://")) else self.url + route

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0,  # the schedule alone decides how many requests are in flight
                socket_factory=stamped_socket.make,
                keepalive_timeout=_KEEP_ALIVE_S,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._timeouts.connect_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=True,
            )
        return self._session


async def _require_success(response: aiohttp.ClientResponse, limits: Deadlines) -> None:
    if HTTPStatus(200) <= response.status < HTTPStatus(300):
        return
    body = await limits.within(response.content.read(_MAX_ERROR_BYTES))
    raise failures.of_status(response.status, body, limits.url, response.headers.get("retry-after"))
