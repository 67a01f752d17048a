"""A transport below an SDK's HTTP client that puts acceptance on the span which is current there.

It stands under every instrumentation: what was current when the request left is the SDK's span, and
it is still open when the last bytes pass. Works with `httpx` and with `httpx2`, whichever the SDK
uses, and changes no byte of an answer.
"""

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from opentelemetry import trace

from engine_adapter.engines import reader_of
from engine_adapter.engines.answer import Answer, AnswerReader, SpeculationSetup
from engine_adapter.errors import GenerationError
from engine_adapter.integrations.span_attributes import acceptance_attributes
from engine_adapter.transport.events import EventDecoder

Record = Callable[[Answer], None]

_ROUTES = ("/chat/completions", "/completions")


class _Observation:
    """One answer's bytes, read beside whoever reads them for real."""

    def __init__(
        self, reader: AnswerReader, headers: Mapping[str, str], record: Record | None
    ) -> None:
        self._reader = reader
        self._record = record
        self._span = trace.get_current_span()
        self._events = EventDecoder()
        self._streamed = headers.get("content-type", "").startswith("text/event-stream")
        self._whole = bytearray()
        reader.take_headers(headers)

    def take(self, data: bytes) -> None:
        """Read a piece, and write what is known by now on the span, before the SDK ends it."""
        try:
            if self._streamed:
                for event in self._events.feed(data, 0.0):
                    self._document(event.data)
            else:
                self._whole += data
                self._document(self._whole.decode())
        except (GenerationError, ValueError):
            return  # not whole yet, or an error: the SDK's to report

    def _document(self, text: str) -> None:
        document = json.loads(text)
        if isinstance(document, dict):
            self._reader.take(document)
            answer = self._reader.answer()
            self._span.set_attributes(acceptance_attributes(answer))
            if self._record is not None:
                self._record(answer)


class _Instrument:
    """What both transports share: the engine's reader, and the request's extra fields."""

    def __init__(self, engine: str, setup: SpeculationSetup | None, record: Record | None) -> None:
        self._reader = reader_of(engine)
        self._setup = setup
        self._record = record

    def asked(self, request: Any) -> Any:  # Any: httpx's or httpx2's request
        """Return the request, asking for what can be read; other routes pass as they are."""
        if not request.url.path.endswith(_ROUTES):
            return request
        try:
            body = json.loads(request.content)
        except ValueError:
            return request
        wanted = self._reader.request_fields(stream=bool(body.get("stream")))
        headers = {k: v for k, v in request.headers.items() if k != "content-length"}
        return _library(request).Request(
            request.method,
            request.url,
            headers=headers,
            content=json.dumps(wanted | body),
            extensions=request.extensions,
        )

    def observe(self, request: Any, response: Any) -> _Observation | None:  # Any: as above
        """Return an observation of a chat's or a completion's answer."""
        wanted = self._record is not None or trace.get_current_span().is_recording()
        if not wanted or not request.url.path.endswith(_ROUTES):
            return None
        return _Observation(self._reader(self._setup), response.headers, self._record)


class _Wrapping:
    """What the transports of both kinds of client share."""

    def __init__(
        self,
        engine: str,
        wrapped: Any,
        *,
        setup: SpeculationSetup | None = None,
        record: Record | None = None,
    ) -> None:  # Any: a transport of httpx or httpx2, of the class's own kind
        """Read answers as the engine's; `setup` says what is known of how it speculates.

        `record` is given each answer as far as it is known, again and again until it is whole.
        """
        self._instrument = _Instrument(engine, setup, record)
        self._wrapped = wrapped


class AcceptanceTransport(_Wrapping):
    """Wraps the transport of an SDK's synchronous HTTP client."""

    def handle_request(self, request: Any) -> Any:  # Any: httpx's or httpx2's own classes
        """Send the request; its answer is read as it passes."""
        request = self._instrument.asked(request)
        response = self._wrapped.handle_request(request)
        observation = self._instrument.observe(request, response)
        if observation is not None:
            response.stream = _observed(response.stream, observation, _library(request))
        return response

    def close(self) -> None:
        """Close the wrapped transport."""
        self._wrapped.close()

    def __enter__(self) -> "AcceptanceTransport":
        self._wrapped.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:  # Any: as `__exit__` has it
        self._wrapped.__exit__(*raised)


class AsyncAcceptanceTransport(_Wrapping):
    """Wraps the transport of an SDK's asynchronous HTTP client."""

    async def handle_async_request(self, request: Any) -> Any:  # Any: as above
        """Send the request; its answer is read as it passes."""
        request = self._instrument.asked(request)
        response = await self._wrapped.handle_async_request(request)
        observation = self._instrument.observe(request, response)
        if observation is not None:
            response.stream = _observed_later(response.stream, observation, _library(request))
        return response

    async def aclose(self) -> None:
        """Close the wrapped transport."""
        await self._wrapped.aclose()

    async def __aenter__(self) -> "AsyncAcceptanceTransport":
        await self._wrapped.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:  # Any: as `__aexit__` has it
        await self._wrapped.__aexit__(*raised)


def _library(request: Any) -> Any:  # Any: the module that the SDK's HTTP client comes from
    return sys.modules[type(request).__module__.partition(".")[0]]


def _observed(stream: Any, observation: _Observation, library: Any) -> Any:
    """Return the stream, read beside; its class is one that the library's client accepts."""

    class Observed(library.SyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            for data in stream:
                observation.take(data)
                yield data

        def close(self) -> None:
            stream.close()

    return Observed()


def _observed_later(stream: Any, observation: _Observation, library: Any) -> Any:
    """Return the asynchronous stream, read beside."""

    class Observed(library.AsyncByteStream):  # type: ignore[misc]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for data in stream:
                observation.take(data)
                yield data

        async def aclose(self) -> None:
            await stream.aclose()

    return Observed()
