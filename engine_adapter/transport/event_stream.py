"""A stream of server-sent events: its events, or the JSON in them, each with its time."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, closing
from typing import Any, NamedTuple

import aiohttp

from engine_adapter.errors import GenerationError
from engine_adapter.transport import failures
from engine_adapter.transport.deadlines import Deadlines
from engine_adapter.transport.events import Event, EventDecoder
from engine_adapter.transport.exchanges import Exchange
from engine_adapter.transport.stamped_body import StampedBody


class JsonEvent(NamedTuple):
    """One event of a stream, decoded."""

    at_s: float
    """As of `Event`: before anything was parsed."""
    body: dict[str, Any]  # Any: whatever JSON the engine sent
    text: str
    """What it was decoded from."""
    name: str | None = None


class Words(NamedTuple):
    """Events that were recognised without being decoded."""

    at_s: float
    words: Sequence[str]
    """Of each event."""


Recognise = Callable[[bytes], Sequence[str] | None]
"""Return the words of bytes that are whole, ordinary events; `None` for any other bytes."""


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
        """When the request's first byte left, by `time.perf_counter`; `None` if not known."""
        self.late_s = 0.0
        """By how much stamps may be late because this process was kept from reading."""
        self._response = response
        self._exchange = exchange
        self._limits = limits
        self._max_event_bytes = max_event_bytes

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield the events, some at once; raises `GenerationError`."""
        async with aclosing(self._decoded(lambda _: None)) as decoded:
            async for event in decoded:
                if isinstance(event, Event):
                    yield event

    async def objects(
        self, *, until_done: bool = True, recognise: Recognise = lambda _: None
    ) -> AsyncGenerator[JsonEvent | Words, None]:
        """Yield the events' JSON objects up to `[DONE]`, and the words of those recognised.

        Raises `GenerationError` for an event that is no JSON object, for one that reports an
        error, and with `until_done` for a stream that ends without `[DONE]`.
        """
        url = self._limits.url
        async with aclosing(self._decoded(recognise)) as decoded:
            async for event in decoded:
                if isinstance(event, Words):
                    yield event
                    continue
                if event.data == "[DONE]":
                    return
                body = _object(event, url)
                if event.name == "error" or body.get("error"):
                    raise failures.of_error_event(body, url)
                yield JsonEvent(event.at_s, body, event.data, event.name)
        if until_done:
            raise GenerationError(
                "stream_truncated", f"{url}: the stream ended without `data: [DONE]`"
            )

    async def _decoded(self, recognise: Recognise) -> AsyncGenerator[Event | Words, None]:
        decoder = EventDecoder(self._max_event_bytes)
        body = StampedBody(self._response, self._exchange, self._limits)
        with closing(body):
            while pieces := await body.read():
                for piece in pieces:
                    data, at_s = piece
                    self.late_s = max(self.late_s, self._exchange.lateness_s(piece))
                    words = None if decoder.is_within_event else recognise(data)
                    if words is not None:
                        yield Words(at_s, words)
                        continue
                    for event in decoder.feed(data, at_s):
                        yield event
        if decoder.pending:
            raise GenerationError(
                "stream_truncated",
                f"{self._limits.url}: the stream ended within an event: {decoder.pending[:80]!r}",
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
