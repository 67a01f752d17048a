"""An OTLP export, the same over HTTP and gRPC: decode, write, answer.

Single source of truth for what a signal is decoded to, for its answer, and for the status that an
error is answered with. Answered means committed.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from anyio import CapacityLimiter, to_thread
from google.protobuf.message import Message
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.content import ContentPolicy
from collector.errors import (
    RETRY_AFTER_S,
    AccessError,
    BodyTooLargeError,
    CollectorError,
    ForbiddenError,
    QueueFullError,
    RateLimitError,
    StoreError,
    words_for_sender,
)
from collector.ingest.counters import Counters, SignalCounts
from collector.ingest.queue import Ingest
from collector.otlp import weight
from collector.otlp.body import Encoding
from collector.otlp.logs import decode_logs
from collector.otlp.metrics import decode_metrics
from collector.otlp.traces import decode_traces
from collector.store import Batch, prepare

_REASONS_SHOWN = 5
_LARGE_BYTES = 2**20
_WRITTEN_AT_ONCE = 4096
"""Spans of one body in one transaction, which everybody else waits for."""
_MAY_NOT_JUDGE = "a score needs an API key with the scope judge"


class StoredBody(NamedTuple):
    """What a body's sender is answered."""

    stored: int
    ignored: int
    rejected: tuple[str, ...]
    """For each item that cannot be stored, the reason."""
    flags: tuple[str, ...] = ()
    """The quality flags of the generations."""
    warning: str = ""
    """What of a body that is stored was left out."""


class Decoded(NamedTuple):
    """What one body held."""

    batch: Batch
    told: StoredBody


class Submitted(NamedTuple):
    """A body whose rows are the writer's alone: they are many, and it lets go of them cheapest."""

    told: StoredBody
    written: Future[None] | None
    """None where nothing is to be written."""
    later: Sequence[Batch] = ()
    """The rest of a large body, to be written part by part, with those of others between."""


class Signal(NamedTuple):
    """One of OTLP's signals."""

    service: str
    """Full name of its gRPC service."""
    decode: Callable[[bytes, Encoding, ContentPolicy], Decoded]
    answer: Callable[[int, str], Message]
    """Makes the response of a partial success, from the number rejected and the reasons."""
    counts: Callable[[Counters], SignalCounts]
    root: weight.Root


class Exporter:
    """Stores the bodies of exports, and answers them.

    Both methods raise `CollectorError` where a body cannot be read or stored; nothing of it is
    stored then.
    """

    def __init__(
        self,
        ingest: Ingest,
        decoders: CapacityLimiter,
        counters: Counters,
        content: ContentPolicy,
    ) -> None:
        self._content = content
        self._ingest = ingest
        self._decoders = decoders
        self._large = CapacityLimiter(1)
        """Beside the others: who sends little does not wait for who sends much."""
        self._counters = counters

    async def export(
        self, signal: Signal, body: bytes, encoding: Encoding, *, judges: bool
    ) -> Message:
        """Store a body and return the response; for the event loop.

        Scores in it are stored if the sender `judges`.
        """
        with self._ingest.admission.room(_room(signal, body, encoding)):
            limiter = self._large if len(body) > _LARGE_BYTES else self._decoders
            told, written, later = await to_thread.run_sync(
                self._submit, signal, body, encoding, judges, limiter=limiter
            )
            if written is not None:
                await asyncio.wrap_future(written)
            for batch in later:
                await self._ingest.write(batch)
        return self._answer(signal, told)

    def export_blocking(
        self, signal: Signal, body: bytes, encoding: Encoding, *, judges: bool
    ) -> Message:
        """Store a body and return the response; for a thread that may wait."""
        with self._ingest.admission.room(_room(signal, body, encoding)):
            told, written, later = self._submit(signal, body, encoding, judges)
            if written is not None:
                written.result()
            for batch in later:
                self._ingest.submit(batch).result()
        return self._answer(signal, told)

    def _submit(
        self,
        signal: Signal,
        body: bytes,
        encoding: Encoding,
        judges: bool,  # noqa: FBT001  # run_sync passes no keywords
    ) -> Submitted:
        with self._ingest.turn.taken():
            batch, told = signal.decode(body, encoding, self._content)
        if (batch.scores or batch.of_responses) and not judges:
            batch, told = _without_scores(signal, batch, told)
        if not told.stored:
            return Submitted(told, None)
        first, *later = _parts(batch)
        return Submitted(told, self._ingest.submit(first), tuple(later))

    @contextmanager
    def counting_refusals(self, signal: Signal) -> Iterator[None]:
        """Count the request that ends inside with a `CollectorError`."""
        try:
            yield
        except CollectorError as exc:
            code = Code.Name(status_of(exc).code)
            self._counters.refused(signal.counts(self._counters), code)
            raise

    def _answer(self, signal: Signal, told: StoredBody) -> Message:
        rejected = told.rejected
        self._counters.answered(
            signal.counts(self._counters),
            received=told.stored + told.ignored + len(rejected),
            ignored=told.ignored,
            rejected=rejected,
            flags=told.flags,
        )
        return signal.answer(len(rejected), _reasons(rejected) or told.warning)


def _room(signal: Signal, body: bytes, encoding: Encoding) -> int:
    """Return how much room a body takes; raises `BodyTooLargeError` where it holds too much."""
    return max(len(body), weight.BYTES_PER_UNIT * weight.units(body, encoding, signal.root))


def _parts(batch: Batch) -> Iterator[Batch]:
    yield replace(batch, spans=batch.spans[:_WRITTEN_AT_ONCE])
    for at in range(_WRITTEN_AT_ONCE, len(batch.spans), _WRITTEN_AT_ONCE):
        yield Batch(spans=batch.spans[at : at + _WRITTEN_AT_ONCE])


def status_of(error: CollectorError) -> Status:
    """Return the status that an error is answered with; it says when to come again, if at all."""
    if isinstance(error, RateLimitError):
        return _later(Code.RESOURCE_EXHAUSTED, error, error.retry_after_s)
    if isinstance(error, QueueFullError | StoreError):
        return _later(Code.UNAVAILABLE, error, RETRY_AFTER_S)
    if isinstance(error, AccessError):
        known = isinstance(error, ForbiddenError)
        code = Code.PERMISSION_DENIED if known else Code.UNAUTHENTICATED
        return Status(code=code, message=str(error))
    too_large = isinstance(error, BodyTooLargeError)
    code = Code.RESOURCE_EXHAUSTED if too_large else Code.INVALID_ARGUMENT
    return Status(code=code, message=str(error))


def _later(code: int, error: CollectorError, after_s: int) -> Status:
    status = Status(code=code, message=words_for_sender(error))
    retry = RetryInfo()
    retry.retry_delay.seconds = after_s
    status.details.add().Pack(retry)
    return status


def _without_scores(signal: Signal, batch: Batch, told: StoredBody) -> Decoded:
    """Leave the scores out that a key without the scope judge may not post."""
    count = len(batch.scores) + len(batch.of_responses)
    kept = replace(batch, scores=(), of_responses=())
    if signal is LOGS:
        return Decoded(kept, StoredBody(0, told.ignored, told.rejected + count * (_MAY_NOT_JUDGE,)))
    return Decoded(kept, told._replace(warning=f"{count} scores are not stored: {_MAY_NOT_JUDGE}"))


def _reasons(rejected: Sequence[str]) -> str:
    reasons = Counter(rejected).most_common(_REASONS_SHOWN)
    return "; ".join(f"{count} × {reason}" for reason, count in reasons)


def _decode_traces(body: bytes, encoding: Encoding, content: ContentPolicy) -> Decoded:
    received = decode_traces(body, encoding)
    rows = prepare(received.received, content)
    batch = Batch(spans=rows, scores=tuple(score for row in rows for score in row.scores))
    flags = tuple(flag for row in rows for flag in row.quality)
    return Decoded(batch, StoredBody(len(received.received), 0, received.rejected, flags))


def _decode_logs(body: bytes, encoding: Encoding, content: ContentPolicy) -> Decoded:
    received = decode_logs(body, encoding)
    scores = tuple(map(content.apply_score, received.scores))
    of_responses = tuple(
        one._replace(score=content.apply_score(one.score)) for one in received.of_responses
    )
    told = StoredBody(len(scores) + len(of_responses), received.ignored, received.rejected)
    return Decoded(Batch(scores=scores, of_responses=of_responses), told)


def _decode_metrics(body: bytes, encoding: Encoding, _: ContentPolicy) -> Decoded:
    received = decode_metrics(body, encoding)
    told = StoredBody(len(received.samples), received.ignored, received.rejected)
    return Decoded(Batch(samples=received.samples), told)


def _traces_answer(rejected: int, reasons: str) -> Message:
    response = ExportTraceServiceResponse()
    if reasons:
        response.partial_success.rejected_spans = rejected
        response.partial_success.error_message = reasons
    return response


def _logs_answer(rejected: int, reasons: str) -> Message:
    response = ExportLogsServiceResponse()
    if rejected:
        response.partial_success.rejected_log_records = rejected
        response.partial_success.error_message = reasons
    return response


def _metrics_answer(rejected: int, reasons: str) -> Message:
    response = ExportMetricsServiceResponse()
    if rejected:
        response.partial_success.rejected_data_points = rejected
        response.partial_success.error_message = reasons
    return response


_SERVICES = "opentelemetry.proto.collector"
TRACES = Signal(
    f"{_SERVICES}.trace.v1.TraceService",
    _decode_traces,
    _traces_answer,
    lambda counters: counters.spans,
    weight.Root.TRACES,
)
LOGS = Signal(
    f"{_SERVICES}.logs.v1.LogsService",
    _decode_logs,
    _logs_answer,
    lambda counters: counters.log_records,
    weight.Root.LOGS,
)
METRICS = Signal(
    f"{_SERVICES}.metrics.v1.MetricsService",
    _decode_metrics,
    _metrics_answer,
    lambda counters: counters.metric_points,
    weight.Root.METRICS,
)
SIGNALS = (TRACES, LOGS, METRICS)
