"""One request to one arm: send it, observe the answer while passing it on, and record it."""

import asyncio
import time
from collections.abc import Callable
from functools import cached_property
from typing import Final, Protocol

from collector.contract import Arm
from engine_adapter.engines.observation import ObservedAnswer
from engine_adapter.errors import GenerationError
from engine_adapter.router.answer_edit import AnswerEdit
from engine_adapter.router.deferred_work import DeferredWork
from engine_adapter.router.engine_arm import EngineArm
from engine_adapter.router.generation_spans import AttemptContext
from engine_adapter.router.http1 import headers
from engine_adapter.router.http1.engine_response import EngineResponse
from engine_adapter.router.observer import AnswerObserver
from engine_adapter.router.request_edit import edit_request
from engine_adapter.router.transport import EngineRequest
from engine_adapter.transport import failures

Record = Callable[["Attempt"], None]

CLIENT_LEFT: Final = GenerationError("client_disconnected", "the client went away")


class AnswerReceiver(Protocol):
    """The receiver of an answer: `begin`, `write`, `end`; or `whole`; or `cut` on failure."""

    def begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        """Set the head; it may be set again until something is written."""

    def write(self, data: bytes) -> None:
        """Send a piece of the body."""

    def takes_more(self) -> bool:
        """Return whether the client is connected and its write buffer is not full."""

    async def drained(self) -> None:
        """Wait for room in the write buffer.

        Raises `ConnectionResetError` if the client has disconnected.
        """

    def end(self, data: bytes = b"") -> None:
        """Send the last piece."""

    def whole(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Send a complete answer."""

    def cut(self) -> None:
        """Break the answer off, so that the client sees it truncated."""


class Attempt:
    """A generation request to one arm; it receives the arm's stream.

    Once the first piece of a stream, or a complete answer, has arrived, this arm is the one that
    answers. If it fails before that, the other arm may answer.
    """

    def __init__(
        self,
        arm: EngineArm,
        request: EngineRequest,
        context: AttemptContext,
        *,
        concurrency: int,
        observed_bytes: int,
        record: Record,
        deferred: DeferredWork,
    ) -> None:
        """Prepare the request; nothing is sent yet."""
        self.arm = arm
        self.context = context
        self.seen = ObservedAnswer(
            concurrency=concurrency, due_s=None, started_s=context.since_s or time.perf_counter()
        )
        settings = arm.settings
        body = b"".join(request.body)
        self._edited = edit_request(body, context.document, settings.engine, model=settings.model)
        named = [header for header in request.headers if header[0].lower() != b"traceparent"]
        named.append((b"traceparent", context.place.traceparent.encode()))
        self._request = EngineRequest(
            method=request.method, target=request.target, headers=named, body=(self._edited.body,)
        )
        self._observed_bytes = observed_bytes
        self._record = record
        self._deferred = deferred
        self._client: AnswerReceiver
        self._response: EngineResponse | None = None
        self._answers = False
        """Whether this arm is committed to answering."""
        self._finished = False

    # Created on first use, after the request was sent.

    @cached_property
    def _edit(self) -> AnswerEdit:
        """Removes from the answer what only the router asked for."""
        return AnswerEdit(self._edited, self._observed_bytes)

    @cached_property
    def observer(self) -> AnswerObserver:
        """Parses the answer for telemetry."""
        reader = self.arm.reader(self.arm.settings.setup)
        return AnswerObserver(reader, self.seen, self._observed_bytes)

    @property
    def retries(self) -> int:
        """The number of times that the request was sent again, to this arm or the other."""
        sent_again = self._response.retries if self._response is not None else 0
        return sent_again + (self.context.since_s is not None)

    @property
    def failure(self) -> GenerationError | None:
        """The failure of the answer as parsed so far; `None` if there is none."""
        return self.seen.error

    async def answer(
        self, client: AnswerReceiver, *, cancelled: GenerationError = CLIENT_LEFT
    ) -> bool:
        """Answer the client; return `False` if this arm failed before anything was sent.

        An answer that breaks off later is cut. Telemetry work is deferred until after the answer.
        """
        self._client = client
        try:
            response = self._response = await self.arm.transport.handle_request(self._request)
            if response.is_stream and response.status < 300:
                self.observer.reader.take_headers(response.headers)
                client.begin(response.status, headers.response_headers(response.headers))
                await response.stream_to(self)
            elif not await self._pass_document(response):
                self.finish()
                return False
        except GenerationError as exc:
            return self._handle_break(exc)
        except (ConnectionError, asyncio.CancelledError):  # closing stops the engine's work
            self.finish(cancelled)
            raise
        self._release()
        self._deferred.add(lambda: self.finish(self._truncated()))
        return True

    def finish(self, error: GenerationError | None = None) -> None:
        """Release the connection and record the attempt; later calls do nothing."""
        if self._finished:
            return
        self._finished = True
        self._release()
        self.observer.catch_up()
        seen = self.seen
        if error is not None and seen.error is None:
            seen.error = error
        if seen.error is None and seen.chunk_times_s:
            seen.ended_s = seen.chunk_times_s[-1]
        self._record(self)

    # Called by the response of a stream

    def receive(self, data: bytes, at_s: float) -> bool:
        """Pass a piece on, then observe it; return whether the client can take more."""
        if self._answers:
            self._client.write(self._edit.feed(data))
            self.observer.feed(data, at_s)
        else:
            self._begin_with(data, at_s)
            self._client.write(self._edit.feed(data))
        return self._client.takes_more()

    async def drained(self) -> None:
        """Wait for the client."""
        await self._client.drained()

    def receive_last(self, data: bytes) -> None:
        """Pass on the last piece and end the answer."""
        at_s = time.perf_counter()
        is_first = not self._answers
        if is_first:
            self._begin_with(data, at_s)
        self._client.end(self._edit.feed(data) + self._edit.rest())
        if not is_first:
            self.observer.feed(data, at_s)

    def _begin_with(self, data: bytes, at_s: float) -> None:
        """Observe a stream's first bytes; raises `GenerationError` if the other arm may answer.

        The candidate's first bytes are parsed before they are passed on: they may report an error.
        """
        if not data:
            raise GenerationError("stream_truncated", "the stream ended before it began")
        self.observer.feed(data, at_s)
        if self.context.arm is Arm.CANDIDATE:
            self.observer.catch_up()
            if self.seen.error is not None:
                raise self.seen.error
        self._commit()

    async def _pass_document(self, response: EngineResponse) -> bool:
        """Pass on an answer that is not a stream; return `False` if the other arm is to answer.

        It is parsed unless it is larger than `observed_bytes`.
        """
        pieces, size = [], 0
        while size <= self._observed_bytes and (data := await response.read()):
            pieces.append(data)
            size += len(data)
        body, is_whole = b"".join(pieces), size <= self._observed_bytes
        self.seen.ended_s = time.perf_counter()
        self._observe_document(response, body, is_whole=is_whole)
        self._commit()
        if self.context.arm is Arm.CANDIDATE and self.failure is not None:
            return False
        status, named, client = (
            response.status,
            headers.response_headers(response.headers),
            self._client,
        )
        if is_whole:
            client.whole(status, named, self._edit.whole(body))
            return True
        client.begin(status, named)
        client.write(body)
        while data := await response.read():
            client.write(data)
            await client.drained()
        client.end()
        self.seen.ended_s = time.perf_counter()
        return True

    def _observe_document(self, response: EngineResponse, body: bytes, *, is_whole: bool) -> None:
        """Observe an answer that is not a stream."""
        if not 200 <= response.status < 300:
            self.seen.error = failures.of_status(
                response.status, body, "the engine", response.headers.get("retry-after")
            )
        elif is_whole:
            self.observer.reader.take_headers(response.headers)
            self.observer.whole(body, self.seen.ended_s)
        else:
            self.observer.unread = True

    def _commit(self) -> None:
        self._answers = True
        if self._response is not None and self._response.status >= 500:
            self.arm.breaker.failed()
        else:
            self.arm.breaker.succeeded()

    def _handle_break(self, exc: GenerationError) -> bool:
        """Handle an answer that the engine broke off; return whether the client got part of it."""
        if self._answers:
            self.finish(exc)
            self._client.write(self._edit.rest())
            self._client.cut()
            return True
        if self.seen.error is None:
            self.seen.error = exc
            self.arm.breaker.failed()
        else:  # an engine that reports an error is reachable
            self.arm.breaker.succeeded()
        self.finish()
        return False

    def _truncated(self) -> GenerationError | None:
        """Return the failure of a stream that ended early or is empty; `None` if it is fine."""
        observer, response = self.observer, self._response
        if response is None or not response.is_stream or observer.unread:
            return None
        if not observer.ended:
            return GenerationError("stream_truncated", "the stream ended before the answer did")
        return observer.emptiness

    def _release(self) -> None:
        """Release the connection; safe to call twice."""
        if self._response is not None:
            self._response.close()
        if not self.seen.ended_s:
            self.seen.ended_s = time.perf_counter()
