"""One request to one arm: sent, observed while its answer passes, and recorded at its end."""

import time
from collections.abc import Callable

from collector.contract import Arm
from engine_adapter.errors import GenerationError
from engine_adapter.observation import Observed
from engine_adapter.router.answer_edit import AnswerEdit
from engine_adapter.router.asking import ask
from engine_adapter.router.engine_answer import Answer
from engine_adapter.router.generation_spans import Circumstances
from engine_adapter.router.observer import AnswerObserver
from engine_adapter.router.upstream import Outgoing, UpstreamClient
from engine_adapter.transport import failures

Record = Callable[["Attempt"], None]


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
        self.first = b""
        """The first bytes of the answer's body, as they came."""
        self._first_at_s: float | None = None
        """When they came, until a stream's are observed."""
        self.is_whole = False
        """Whether that is all of it."""
        settings = upstream.settings
        asked = ask(outgoing.body, around.document, settings.engine, model=settings.model)
        self.edit = AnswerEdit(asked, observed_bytes)
        self.observer = AnswerObserver(upstream.reader(settings.setup), self.seen, observed_bytes)
        headers = [one for one in outgoing.headers if one[0].lower() != b"traceparent"]
        headers.append((b"traceparent", around.place.traceparent.encode()))
        self._outgoing = Outgoing(
            method=outgoing.method, target=outgoing.target, headers=headers, body=asked.body
        )
        self._observed_bytes = observed_bytes
        self._record = record
        self._answer: Answer | None = None
        self._let_go = False
        self._finished = False

    @property
    def answer(self) -> Answer:
        """The engine's answer, once `open` has returned."""
        if self._answer is None:
            raise RuntimeError("the attempt was not opened")
        return self._answer

    async def open(self) -> None:
        """Send the request and wait for the answer's first bytes; raises `GenerationError`.

        An answer that is no stream is read whole, unless it is too large. A candidate's first
        bytes are observed at once: where they tell of a failure, the baseline answers.
        """
        try:
            self._answer = await self.upstream.send(self._outgoing)
            await self._begin(self._answer)
            if self.around.arm is Arm.CANDIDATE:
                self.observe_first()
                self.observer.catch_up()
        except GenerationError as exc:
            self.upstream.breaker.failed()
            self.seen.error = exc
            raise
        if self._answer.status >= 500:
            self.upstream.breaker.failed()
        else:
            self.upstream.breaker.succeeded()

    async def _begin(self, answer: Answer) -> None:
        if answer.is_stream and answer.status < 300:
            self.observer.reader.take_headers(answer.headers)
            self.first = await self.read()
            if not self.first:
                raise GenerationError("stream_truncated", "the stream ended before it began")
            self._first_at_s = time.perf_counter()
            return
        pieces, size = [], 0
        while size <= self._observed_bytes and (data := await answer.read()):
            pieces.append(data)
            size += len(data)
        self.first = b"".join(pieces)
        self.is_whole = size <= self._observed_bytes
        self.seen.ended_s = time.perf_counter()
        self._judge(answer)

    def _judge(self, answer: Answer) -> None:
        """Observe an answer that is no stream."""
        if not 200 <= answer.status < 300:
            self.seen.error = failures.of_status(
                answer.status, self.first, "the engine", answer.headers.get("retry-after")
            )
        elif self.is_whole:
            self.observer.reader.take_headers(answer.headers)
            self.observer.whole(self.first, self.seen.ended_s)
        else:
            self.observer.unread = True

    @property
    def has_answer(self) -> bool:
        """Whether the engine answered, be it with an error."""
        return self._answer is not None and (self.is_whole or bool(self.first))

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
        """Return the answer's next bytes, empty at the end; raises `GenerationError`."""
        return await self.answer.read()

    def observe_first(self) -> None:
        """Take the first bytes of a stream, if that was not done yet."""
        if self._first_at_s is not None:
            self.observer.feed(self.first, self._first_at_s)
            self._first_at_s = None

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
        self.observe_first()
        self.observer.catch_up()
        seen = self.seen
        if error is not None and seen.error is None:
            seen.error = error
        if seen.error is None and seen.chunk_times_s:
            seen.ended_s = seen.chunk_times_s[-1]
        self._record(self)
