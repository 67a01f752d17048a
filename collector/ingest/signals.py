"""OTLP's signals: how each is decoded and answered, over HTTP and gRPC."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.content import ContentPolicy
from collector.errors import BodyTooLargeError
from collector.ingest.counters import Counters, SignalCounts
from collector.ingest.trace_parts import decode_parts
from collector.otlp import weight
from collector.otlp.body import Encoding
from collector.otlp.light_parts import LightParts
from collector.otlp.logs import decode_logs
from collector.otlp.metrics import decode_metrics
from collector.store import Batch

_HEAVY: Final = (
    f"a {{}}, or its resource or scope, holds more than {weight.MOST_IN_ITEM} attributes, events, "
    "links, points and values"
)


class StoredBody(NamedTuple):
    """The result of one body: stored, ignored and rejected items."""

    stored: int
    ignored: int
    rejected: tuple[str, ...]
    """The reason for each item that cannot be stored."""
    flags: tuple[str, ...] = ()
    """The quality flags of the generations."""
    warning: str = ""
    """A message about parts of accepted items that were left out."""


class DecodedBody(NamedTuple):
    """The decoded content of a body or a part of one."""

    batch: Batch
    result: StoredBody


class Signal(NamedTuple):
    """One of OTLP's signals."""

    service: str
    """Full name of its gRPC service."""
    decode: Callable[[Iterator[bytes], Encoding, ContentPolicy], Iterator[DecodedBody]]
    """Yields the decoded parts of a body."""
    item: str
    """Noun for the items of a body."""
    response: type[Message]
    rejected: str
    """The response's field for the number of rejected items."""
    counts: Callable[[Counters], SignalCounts]
    root: weight.Root

    def answer(self, rejected: int, reasons: str) -> Message:
        """Return the response, given the number of rejected items and the reasons."""
        response = self.response()
        if reasons:
            setattr(response.partial_success, self.rejected, rejected)
            response.partial_success.error_message = reasons
        return response


def decode(
    signal: Signal, light: LightParts, encoding: Encoding, content: ContentPolicy
) -> Iterator[DecodedBody]:
    """Yield a body's decoded parts, and the rejection of items that hold too much.

    Raises `OtlpError`, and `BodyTooLargeError` for a metric that holds too much: its points, which
    would be rejected, are not counted.
    """
    if light.heavy and signal is METRICS:
        raise BodyTooLargeError(_HEAVY.format(signal.item) + "; send smaller batches")
    yield from signal.decode(light.parts, encoding, content)
    if light.heavy:
        yield DecodedBody(Batch(), StoredBody(0, 0, light.heavy * (_HEAVY.format(signal.item),)))


def _decode_traces(
    parts: Iterator[bytes], encoding: Encoding, content: ContentPolicy
) -> Iterator[DecodedBody]:
    for rows, rejected in decode_parts(parts, encoding, content):
        batch = Batch(spans=rows, scores=tuple(score for row in rows for score in row.scores))
        flags = tuple(flag for row in rows for flag in row.quality)
        yield DecodedBody(batch, StoredBody(len(rows), 0, rejected, flags))


def _decode_logs(
    parts: Iterator[bytes], encoding: Encoding, content: ContentPolicy
) -> Iterator[DecodedBody]:
    for part in parts:
        received = decode_logs(part, encoding)
        scores = tuple(map(content.apply_score, received.scores))
        of_responses = tuple(
            one._replace(score=content.apply_score(one.score)) for one in received.of_responses
        )
        result = StoredBody(len(scores) + len(of_responses), received.ignored, received.rejected)
        yield DecodedBody(Batch(scores=scores, of_responses=of_responses), result)


def _decode_metrics(
    parts: Iterator[bytes], encoding: Encoding, _: ContentPolicy
) -> Iterator[DecodedBody]:
    for part in parts:
        received = decode_metrics(part, encoding)
        result = StoredBody(len(received.samples), received.ignored, received.rejected)
        yield DecodedBody(Batch(samples=received.samples), result)


_SERVICES = "opentelemetry.proto.collector"
TRACES = Signal(
    f"{_SERVICES}.trace.v1.TraceService",
    _decode_traces,
    "span",
    ExportTraceServiceResponse,
    "rejected_spans",
    lambda counters: counters.spans,
    weight.Root.TRACES,
)
LOGS = Signal(
    f"{_SERVICES}.logs.v1.LogsService",
    _decode_logs,
    "log record",
    ExportLogsServiceResponse,
    "rejected_log_records",
    lambda counters: counters.log_records,
    weight.Root.LOGS,
)
METRICS = Signal(
    f"{_SERVICES}.metrics.v1.MetricsService",
    _decode_metrics,
    "metric",
    ExportMetricsServiceResponse,
    "rejected_data_points",
    lambda counters: counters.metric_points,
    weight.Root.METRICS,
)
SIGNALS = (TRACES, LOGS, METRICS)
