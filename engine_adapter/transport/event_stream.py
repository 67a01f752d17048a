"""A stream of server-sent events: its events or their JSON objects, each with its arrival time."""

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
    """As `Event.at_s`."""
    body: dict[str, Any]  # Any: whatever JSON the engine sent
    text: str
    """The JSON text of `body`."""
    name: str | None = None


class RecognizedEvents(NamedTuple):
    """Events that were recognised without decoding their JSON."""

    at_s: float
    words: Sequence[str]
    """The words of each event."""


Recognise = Callable[[bytes], Sequence[str] | None]
"""Returns the words if the bytes are only whole ordinary events, else `None`."""


class EventStream:
    """A stream whose head has arrived, with status 2xx and the right content type."""

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
        """When the request's first byte was sent, by `time.perf_counter`; `None` if unknown."""
        self.late_s = 0.0
        """How late the stamps so far may be because this process could not read in time."""
        self._response = response
        self._exchange = exchange
        self._limits = limits
        self._max_event_bytes = max_event_bytes

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield the events; raises `GenerationError`."""
        async with aclosing(self._decoded(lambda _: None)) as decoded:
            async for event in decoded:
                if isinstance(event, Event):
                    yield event

    async def objects(
        self, *, until_done: bool = True, recognise: Recognise = lambda _: None
    ) -> AsyncGenerator[JsonEvent | RecognizedEvents, None]:
        """Yield the events' JSON objects up to `[DONE]`, or the words of recognised events.

        Raises `GenerationError` for an event that is not a JSON object, for one that reports an
        error, and, if `until_done`, for a stream that ends without `[DONE]`.
        """
        url = self._limits.url
        async with aclosing(self._decoded(recognise)) as decoded:
            async for event in decoded:
                if isinstance(event, RecognizedEvents):
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

    async def _decoded(
        self, recognise: Recognise
    ) -> AsyncGenerator[Event | RecognizedEvents, None]:
        decoder = EventDecoder(self._max_event_bytes)
        body = StampedBody(self._response, self._exchange, self._limits)
        with closing(body):
            while pieces := await body.read():
                for piece in pieces:
                    data, at_s = piece
                    self.late_s = max(self.late_s, self._exchange.lateness_s(piece))
                    words = None if decoder.is_within_event else recognise(data)
                    if words is not None:
                        yield RecognizedEvents(at_s, words)
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
