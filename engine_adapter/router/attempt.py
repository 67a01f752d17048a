"""One request to one arm: sent, observed while its answer passes to the client, and recorded."""

import asyncio
import time
from collections.abc import Callable
from functools import cached_property
from typing import Final, Protocol

from collector.contract import Arm
from engine_adapter.engines.observation import Observed
from engine_adapter.errors import GenerationError
from engine_adapter.router.answer_edit import AnswerEdit
from engine_adapter.router.deferred_work import DeferredWork
from engine_adapter.router.engine_arm import EngineArm
from engine_adapter.router.generation_spans import Circumstances
from engine_adapter.router.http1 import headers
from engine_adapter.router.observer import AnswerObserver
from engine_adapter.router.request_edit import ask
from engine_adapter.router.transport import EngineRequest, Response
from engine_adapter.transport import failures

Record = Callable[["Attempt"], None]

CLIENT_LEFT: Final = GenerationError("client_disconnected", "the client went away")


class Client(Protocol):
    """Whom an attempt answers: `begin`, then `write`, then `end`, or `whole`; else `cut`."""

    def begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        """Set the head; until something is written, another may take its place."""

    def write(self, data: bytes) -> None:
        """Send a piece of the body."""

    def takes_more(self) -> bool:
        """Return whether the client is there and little waits for it."""

    async def drained(self) -> None:
        """Wait until little waits; raises `ConnectionResetError` if the client has gone."""

    def end(self, data: bytes = b"") -> None:
        """Send the last piece."""

    def whole(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Send a whole answer."""

    def cut(self) -> None:
        """Break the answer off, so that it is not taken for whole."""


class Attempt:
    """A generation asked of one arm; it receives the arm's stream.

    The arm answers from the first piece of its stream on, or from a whole answer on: what goes
    wrong before that may be answered by the other arm.
    """

    def __init__(
        self,
        arm: EngineArm,
        request: EngineRequest,
        around: Circumstances,
        *,
        concurrency: int,
        observed_bytes: int,
        record: Record,
        deferred: DeferredWork,
    ) -> None:
        """Ask for what `around` says; nothing is sent yet."""
        self.arm = arm
        self.around = around
        self.seen = Observed(
            concurrency=concurrency, due_s=None, started_s=around.since_s or time.perf_counter()
        )
        settings = arm.settings
        body = b"".join(request.body)
        self._asked = ask(body, around.document, settings.engine, model=settings.model)
        named = [header for header in request.headers if header[0].lower() != b"traceparent"]
        named.append((b"traceparent", around.place.traceparent.encode()))
        self._request = EngineRequest(
            method=request.method, target=request.target, headers=named, body=(self._asked.body,)
        )
        self._observed_bytes = observed_bytes
        self._record = record
        self._deferred = deferred
        self._client: Client
        self._response: Response | None = None
        self._answers = False
        """Whether this arm is the one that answers."""
        self._finished = False

    # Made once they are needed: the request is on its way by then.

    @cached_property
    def _edit(self) -> AnswerEdit:
        """What is taken out of the answer."""
        return AnswerEdit(self._asked, self._observed_bytes)

    @cached_property
    def observer(self) -> AnswerObserver:
        """What reads the answer."""
        reader = self.arm.reader(self.arm.settings.setup)
        return AnswerObserver(reader, self.seen, self._observed_bytes)

    @property
    def retries(self) -> int:
        """How often the request had to be sent again, to this arm or the other."""
        sent_again = self._response.retries if self._response is not None else 0
        return sent_again + (self.around.since_s is not None)

    @property
    def failure(self) -> GenerationError | None:
        """What is wrong with the answer as far as it was read."""
        return self.seen.error

    async def answer(self, client: Client, *, cancelled: GenerationError = CLIENT_LEFT) -> bool:
        """Answer a client; return whether this arm did. If not, nothing was sent to the client.

        An answer that breaks off later is cut. Telemetry's work follows after the answer's end.
        """
        self._client = client
        try:
            response = self._response = await self.arm.transport.handle_request(self._request)
            if response.is_stream and response.status < 300:
                self.observer.reader.take_headers(response.headers)
                client.begin(response.status, headers.of_answer(response.headers))
                await response.stream_to(self)
            elif not await self._document(response):
                self.finish()
                return False
        except GenerationError as exc:
            return self._broken_off(exc)
        except (ConnectionError, asyncio.CancelledError):  # cutting it ends the engine's work
            self.finish(cancelled)
            raise
        self._let_go()
        self._deferred.add(lambda: self.finish(self._truncated()))
        return True

    def finish(self, error: GenerationError | None = None) -> None:
        """Let go of the connection and record what was seen; only the first call counts."""
        if self._finished:
            return
        self._finished = True
        self._let_go()
        self.observer.catch_up()
        seen = self.seen
        if error is not None and seen.error is None:
            seen.error = error
        if seen.error is None and seen.chunk_times_s:
            seen.ended_s = seen.chunk_times_s[-1]
        self._record(self)

    # What a stream's response calls

    def receive(self, data: bytes, at_s: float) -> bool:
        """Send a piece on, then observe it; return whether more may come now."""
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
        """Send the last piece on, with the answer's end."""
        at_s = time.perf_counter()
        is_first = not self._answers
        if is_first:
            self._begin_with(data, at_s)
        self._client.end(self._edit.feed(data) + self._edit.rest())
        if not is_first:
            self.observer.feed(data, at_s)

    def _begin_with(self, data: bytes, at_s: float) -> None:
        """Observe a stream's first bytes; raises `GenerationError` if the other arm may answer.

        A candidate's are read before they are sent on: they may tell of a failure.
        """
        if not data:
            raise GenerationError("stream_truncated", "the stream ended before it began")
        self.observer.feed(data, at_s)
        if self.around.arm is Arm.CANDIDATE:
            self.observer.catch_up()
            if self.seen.error is not None:
                raise self.seen.error
        self._succeed()

    async def _document(self, response: Response) -> bool:
        """Pass on an answer that is no stream; return `False` if the other arm is to answer.

        It is observed whole, unless it is too large.
        """
        pieces, size = [], 0
        while size <= self._observed_bytes and (data := await response.read()):
            pieces.append(data)
            size += len(data)
        body, is_whole = b"".join(pieces), size <= self._observed_bytes
        self.seen.ended_s = time.perf_counter()
        self._judge(response, body, is_whole=is_whole)
        self._succeed()
        if self.around.arm is Arm.CANDIDATE and self.failure is not None:
            return False
        status, named, client = response.status, headers.of_answer(response.headers), self._client
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

    def _judge(self, response: Response, body: bytes, *, is_whole: bool) -> None:
        """Observe an answer that is no stream."""
        if not 200 <= response.status < 300:
            self.seen.error = failures.of_status(
                response.status, body, "the engine", response.headers.get("retry-after")
            )
        elif is_whole:
            self.observer.reader.take_headers(response.headers)
            self.observer.whole(body, self.seen.ended_s)
        else:
            self.observer.unread = True

    def _succeed(self) -> None:
        self._answers = True
        if self._response is not None and self._response.status >= 500:
            self.arm.breaker.failed()
        else:
            self.arm.breaker.succeeded()

    def _broken_off(self, exc: GenerationError) -> bool:
        """End an answer that its engine broke off; return whether the client got some of it."""
        if self._answers:
            self.finish(exc)
            self._client.write(self._edit.rest())
            self._client.cut()
            return True
        if self.seen.error is None:
            self.seen.error = exc
            self.arm.breaker.failed()
        else:  # an engine that says what is wrong is there
            self.arm.breaker.succeeded()
        self.finish()
        return False

    def _truncated(self) -> GenerationError | None:
        """Return the failure of a stream that its engine closed before the answer was whole."""
        observer, response = self.observer, self._response
        if response is None or not response.is_stream or observer.unread:
            return None
        if not observer.ended:
            return GenerationError("stream_truncated", "the stream ended before the answer did")
        return observer.emptiness

    def _let_go(self) -> None:
        """Let go of the connection; safe to call twice."""
        if self._response is not None:
            self._response.close()
        if not self.seen.ended_s:
            self.seen.ended_s = time.perf_counter()
