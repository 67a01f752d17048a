"""A transport below an SDK's HTTP client that adds acceptance counts to the current span.

It is below every instrumentation: the span that is current when the request is sent is the SDK's,
and it is still open when the last bytes pass. Works with `httpx` and `httpx2`, and changes no byte
of an answer.
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
    """Parses one answer's bytes while the SDK reads them."""

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
        """Parse a piece and set the span's attributes known so far, before the SDK ends it."""
        try:
            if self._streamed:
                for event in self._events.feed(data, 0.0):
                    self._document(event.data)
            else:
                self._whole += data
                self._document(self._whole.decode())
        except (GenerationError, ValueError):
            return  # incomplete JSON, or an error that the SDK reports

    def _document(self, text: str) -> None:
        document = json.loads(text)
        if isinstance(document, dict):
            self._reader.take(document)
            answer = self._reader.answer()
            self._span.set_attributes(acceptance_attributes(answer))
            if self._record is not None:
                self._record(answer)


class _WrappingTransport:
    """The base of both transports: adds request fields and observes answers."""

    def __init__(
        self,
        engine: str,
        wrapped: Any,
        *,
        setup: SpeculationSetup | None = None,
        record: Record | None = None,
    ) -> None:  # Any: a transport of httpx or httpx2, of the class's own kind
        """Use `engine`'s reader; `setup` describes how the engine speculates.

        `record` is called with the answer so far, repeatedly until it is complete.
        """
        self._reader = reader_of(engine)
        self._setup = setup
        self._record = record
        self._wrapped = wrapped

    def _with_fields(self, request: Any) -> Any:  # Any: httpx's or httpx2's request
        """Return the request with the engine's extra fields; other routes pass unchanged."""
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

    def _observation(self, request: Any, response: Any) -> _Observation | None:  # Any: as above
        """Return an observation of a (chat) completion; `None` if nothing would use it."""
        wanted = self._record is not None or trace.get_current_span().is_recording()
        if not wanted or not request.url.path.endswith(_ROUTES):
            return None
        return _Observation(self._reader(self._setup), response.headers, self._record)


class AcceptanceTransport(_WrappingTransport):
    """Wraps the transport of an SDK's synchronous HTTP client."""

    def handle_request(self, request: Any) -> Any:  # Any: httpx's or httpx2's own classes
        """Send the request; observe its answer as it passes."""
        request = self._with_fields(request)
        response = self._wrapped.handle_request(request)
        observation = self._observation(request, response)
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


class AsyncAcceptanceTransport(_WrappingTransport):
    """Wraps the transport of an SDK's asynchronous HTTP client."""

    async def handle_async_request(self, request: Any) -> Any:  # Any: as above
        """Send the request; observe its answer as it passes."""
        request = self._with_fields(request)
        response = await self._wrapped.handle_async_request(request)
        observation = self._observation(request, response)
        if observation is not None:
            response.stream = _observed_async(response.stream, observation, _library(request))
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
    """Return the observed stream, in a class that the library's client accepts."""

    class ObservedStream(library.SyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            for data in stream:
                observation.take(data)
                yield data

        def close(self) -> None:
            stream.close()

    return ObservedStream()


def _observed_async(stream: Any, observation: _Observation, library: Any) -> Any:
    """Return the observed asynchronous stream."""

    class ObservedAsyncStream(library.AsyncByteStream):  # type: ignore[misc]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for data in stream:
                observation.take(data)
                yield data

        async def aclose(self) -> None:
            await stream.aclose()

    return ObservedAsyncStream()
