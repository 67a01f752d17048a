"""One request to one arm: sent, observed while its answer passes, and recorded at its end.

`begin`, then `open`; an answer that is a stream is then handed on, and the arm answers from its
first piece on: what goes wrong before that may be answered by the other.
"""

import time
from collections.abc import Callable
from functools import cached_property
from typing import Protocol

from collector.contract import Arm
from engine_adapter.engines.observation import Observed
from engine_adapter.errors import GenerationError
from engine_adapter.router.answer_edit import AnswerEdit
from engine_adapter.router.generation_spans import Circumstances
from engine_adapter.router.http1.engine_answer import Answer
from engine_adapter.router.observer import AnswerObserver
from engine_adapter.router.request_edit import ask
from engine_adapter.router.upstream import Outgoing, Sending, UpstreamClient
from engine_adapter.transport import failures

Record = Callable[["Attempt"], None]


class Sink(Protocol):
    """Where a stream goes."""

    def deliver(self, data: bytes) -> bool:
        """Take a piece; say whether more may come now."""

    async def drained(self) -> None:
        """Wait until more may come."""

    def end(self, data: bytes) -> None:
        """Take what came with the end, which may be nothing."""


class Attempt:
    """A generation asked of one arm. `finish` is to be called once, whatever happened."""

    def __init__(
        self,
        upstream: UpstreamClient,
        outgoing: Outgoing,
        around: Circumstances,
        *,
        concurrency: int,
        observed_bytes: int,
        record: Record,
    ) -> None:
        """Ask for what `around` says; nothing is sent yet."""
        self.upstream = upstream
        self.around = around
        self.seen = Observed(
            concurrency=concurrency, due_s=None, started_s=around.since_s or time.perf_counter()
        )
        self.body = b""
        """Of an answer that is no stream, the beginning."""
        self.is_whole = False
        """Whether that is all of it."""
        self.has_begun = False
        """Whether this arm is the one that answers."""
        settings = upstream.settings
        self._asked = ask(outgoing.body, around.document, settings.engine, model=settings.model)
        headers = [one for one in outgoing.headers if one[0].lower() != b"traceparent"]
        headers.append((b"traceparent", around.place.traceparent.encode()))
        self._outgoing = Outgoing(
            method=outgoing.method, target=outgoing.target, headers=headers, body=self._asked.body
        )
        self._observed_bytes = observed_bytes
        self._record = record
        self._sending: Sending | None = None
        self._answer: Answer | None = None
        self._let_go = False
        self._finished = False

    # Made once they are needed: the request is on its way by then.

    @cached_property
    def edit(self) -> AnswerEdit:
        """What is taken out of the answer."""
        return AnswerEdit(self._asked, self._observed_bytes)

    @cached_property
    def observer(self) -> AnswerObserver:
        """What reads the answer."""
        reader = self.upstream.reader(self.upstream.settings.setup)
        return AnswerObserver(reader, self.seen, self._observed_bytes)

    @property
    def answer(self) -> Answer:
        """The engine's answer, once `open` has returned."""
        if self._answer is None:
            raise RuntimeError("the attempt was not opened")
        return self._answer

    def begin(self) -> None:
        """Send the request, at once where a connection is there; `open` is to be awaited then."""
        self._sending = self.upstream.begin(self._outgoing)

    async def open(self) -> None:
        """Wait for a stream's head, or for the whole of another answer; raises `GenerationError`.

        An answer that is too large is begun alone.
        """
        if self._sending is None:
            self.begin()
        sending, self._sending = self._sending, None
        if sending is None:
            raise RuntimeError("the attempt was opened before")
        try:
            self._answer = await sending.answer()
            if self.is_stream:
                self.observer.reader.take_headers(self._answer.headers)
            else:
                await self._read(self._answer)
                self._succeed(self._answer)
        except GenerationError as exc:
            self._fail(exc)
            raise

    @property
    def is_stream(self) -> bool:
        """Whether the answer is to be handed on piece by piece."""
        return self.answer.is_stream and self.answer.status < 300

    async def hand_on(self, sink: Sink) -> None:
        """Hand a stream on as it comes, and observe it; raises `GenerationError`.

        A candidate's first bytes are observed before they are handed on: where they tell of a
        failure they are not, and the baseline may answer.
        """
        deliver, observe = sink.deliver, self.observer.feed

        def take(data: bytes, at_s: float) -> bool:
            may_go_on = deliver(data)
            observe(data, at_s)
            return may_go_on

        def first(data: bytes, at_s: float) -> bool:
            return deliver(data) if self._begins_with(data, at_s) else take(data, at_s)

        is_observed = False
        try:
            last = await self.answer.hand_on(first, take, sink.drained)
            if not self.has_begun:
                is_observed = self._begins_with(last, time.perf_counter())
        except GenerationError as exc:
            if not self.has_begun:
                self._fail(exc)
            raise
        sink.end(last)
        if not is_observed:
            observe(last, time.perf_counter())

    def _begins_with(self, data: bytes, at_s: float) -> bool:
        """Let this arm answer with a stream's first bytes; say whether they were observed."""
        if not data:
            raise GenerationError("stream_truncated", "the stream ended before it began")
        is_candidate = self.around.arm is Arm.CANDIDATE
        if is_candidate:
            self.observer.feed(data, at_s)
            self.observer.catch_up()
            if self.seen.error is not None:
                raise self.seen.error
        self._succeed(self.answer)
        return is_candidate

    async def _read(self, answer: Answer) -> None:
        """Read an answer that is no stream, unless it is too large, and observe it."""
        pieces, size = [], 0
        while size <= self._observed_bytes and (data := await answer.read()):
            pieces.append(data)
            size += len(data)
        self.body = b"".join(pieces)
        self.is_whole = size <= self._observed_bytes
        self.seen.ended_s = time.perf_counter()
        self._judge(answer)

    def _succeed(self, answer: Answer) -> None:
        self.has_begun = True
        if answer.status >= 500:
            self.upstream.breaker.failed()
        else:
            self.upstream.breaker.succeeded()

    def _fail(self, exc: GenerationError) -> None:
        if self.seen.error is None:
            self.seen.error = exc
            self.upstream.breaker.failed()
        else:  # an engine that says what is wrong is there
            self.upstream.breaker.succeeded()

    def _judge(self, answer: Answer) -> None:
        """Observe an answer that is no stream."""
        if not 200 <= answer.status < 300:
            self.seen.error = failures.of_status(
                answer.status, self.body, "the engine", answer.headers.get("retry-after")
            )
        elif self.is_whole:
            self.observer.reader.take_headers(answer.headers)
            self.observer.whole(self.body, self.seen.ended_s)
        else:
            self.observer.unread = True

    @property
    def retries(self) -> int:
        """How often the request had to be sent again, to this arm or the other."""
        sent_again = self._answer.retries if self._answer is not None else 0
        return sent_again + (self.around.since_s is not None)

    @property
    def failure(self) -> GenerationError | None:
        """What is wrong with the answer as far as it was read."""
        return self.seen.error

    async def read(self) -> bytes:
        """Return the next bytes of an answer that is no stream; raises `GenerationError`."""
        return await self.answer.read()

    def let_go(self) -> None:
        """Let go of the connection; safe to call twice."""
        if self._let_go:
            return
        self._let_go = True
        if self._answer is not None:
            self._answer.close()
        if not self.is_whole:
            self.seen.ended_s = time.perf_counter()

    def finish(self, error: GenerationError | None = None) -> None:
        """Let go of the connection and record what was seen; only the first call counts."""
        if self._finished:
            return
        self._finished = True
        self.let_go()
        self.observer.catch_up()
        seen = self.seen
        if error is not None and seen.error is None:
            seen.error = error
        if seen.error is None and seen.chunk_times_s:
            seen.ended_s = seen.chunk_times_s[-1]
        self._record(self)
