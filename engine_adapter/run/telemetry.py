"""Export of generations as OpenTelemetry spans over OTLP.

It has its own tracer providers; the application's global one is not touched. Spans are queued and
sent in batches from a thread. Batches that failed are sent once more at the end; if that fails
too, `SpanSender.close` raises.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from http import HTTPStatus

import httpx
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace import Status as SpanOutcome

from collector.contract import Generation, Span, SpanStatus
from collector.contract.attributes import ERROR_TYPE, SCHEMA_URL
from collector.nouns import counted
from engine_adapter.collector_access import CollectorAccess
from engine_adapter.errors import TelemetryError
from engine_adapter.recording.span import span_of

_QUEUE = 1 << 16
_BATCH = 64
_EVERY_MS = 1000
"""How long a span waits for its batch; a killed run has to answer these turns again."""

Stored = Callable[[Iterable[str]], None]
"""Called with the ids of spans that the collector has acknowledged, from the exporting thread."""


def require_collector(collector_url: str) -> None:
    """Raise `TelemetryError` unless the collector accepts an empty export."""
    url, access = _traces(collector_url), CollectorAccess.from_environment()
    try:
        answer = httpx.post(
            url,
            content=b"",
            headers={**access.headers, "content-type": "application/x-protobuf"},
            verify=access.tls(),
        )
    except httpx.HTTPError as exc:
        raise TelemetryError(
            f"{url}: no collector answers ({exc}); start one with `draftgate serve`, "
            "or name another with --collector"
        ) from exc
    if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise TelemetryError(
            f"{url}: refused ({answer.status_code}): {_message(answer)}; "
            "put a key with the scope ingest into DRAFTGATE_API_KEY"
        )
    if not answer.is_success:
        raise TelemetryError(
            f"{url}: answered {answer.status_code} to an empty export; "
            "wanted an OTLP/HTTP endpoint such as `draftgate serve` offers"
        )


class SpanSender:
    """Sends generations as spans from one thread; `close` waits until all are delivered."""

    def __init__(
        self,
        collector_url: str,
        *,
        exporter: SpanExporter | None = None,
        stored: Stored = lambda _span_ids: None,
    ) -> None:
        """Send to a collector; API key and TLS settings come from the environment."""
        self._url = _traces(collector_url)
        access = CollectorAccess.from_environment()
        self._delivery = _Delivery(
            exporter
            or OTLPSpanExporter(
                endpoint=self._url,
                headers=access.headers,
                certificate_file=access.ca_file,
            ),
            stored,
        )
        self._processor = BatchSpanProcessor(
            self._delivery,
            max_queue_size=_QUEUE,
            max_export_batch_size=_BATCH,
            schedule_delay_millis=_EVERY_MS,
        )
        self._providers: dict[tuple[tuple[str, object], ...], TracerProvider] = {}
        self._ids = _RecordIds()

    def send(self, generation: Generation, parent_span_id: str | None = None) -> None:
        """Queue the generation's span, with the generation's own ids and times."""
        self.send_span(replace(span_of(generation), parent_span_id=parent_span_id))

    def send_span(self, span: Span) -> None:
        """Queue a span."""
        tracer = self._provider(tuple(sorted(span.resource.items()))).get_tracer(
            "draftgate", schema_url=SCHEMA_URL
        )
        self._ids.next = (int(span.trace_id, 16), int(span.span_id, 16))
        open_span = tracer.start_span(
            span.name,
            context=_below(span),
            kind=SpanKind[span.kind.upper()],
            attributes=dict(span.attributes),
            start_time=span.start_unix_ns,
        )
        if span.status is SpanStatus.ERROR:
            open_span.set_status(
                SpanOutcome(StatusCode.ERROR, str(span.attributes.get(ERROR_TYPE)))
            )
        open_span.end(end_time=span.end_unix_ns)

    def close(self) -> None:
        """Send all queued spans; raises `TelemetryError` if one was not accepted."""
        self._processor.shutdown()  # type: ignore[no-untyped-call]
        self._delivery.retry()
        self._delivery.exporter.shutdown()
        self._require_delivered()

    def flush(self) -> None:
        """Send the queued spans now; raises `TelemetryError` if one was not accepted."""
        self._processor.force_flush()
        self._delivery.retry()
        self._require_delivered()

    def _require_delivered(self) -> None:
        lost = len(self._delivery.refused)
        if lost:
            raise TelemetryError(
                f"{self._url} did not accept {counted(lost, 'span')}; is `draftgate serve` running "
                "there? run again: stored answers are not requested again"
            )

    def _provider(self, resource: tuple[tuple[str, object], ...]) -> TracerProvider:
        if resource not in self._providers:
            attributes = dict(resource)
            provider = TracerProvider(
                resource=Resource.create(attributes),  # type: ignore[arg-type]  # strings alone
                id_generator=self._ids,
                shutdown_on_exit=False,
            )
            provider.add_span_processor(self._processor)
            self._providers[resource] = provider
        return self._providers[resource]


def _below(span: Span) -> Context | None:
    """Return the context of a span below another one; `None` for a root."""
    if span.parent_span_id is None:
        return None
    parent = SpanContext(
        int(span.trace_id, 16),
        int(span.parent_span_id, 16),
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return set_span_in_context(NonRecordingSpan(parent))


def _traces(collector_url: str) -> str:
    return f"{collector_url.rstrip('/')}/v1/traces"


def _message(answer: httpx.Response) -> str:
    """Return the message of an OTLP `Status` body, or else the HTTP reason phrase."""
    try:
        return str(Status.FromString(answer.content).message) or answer.reason_phrase
    except DecodeError:
        return answer.reason_phrase


class _RecordIds(IdGenerator):
    """Gives each span the ids of its generation, set in `next` before the span starts."""

    def __init__(self) -> None:
        self.next = (0, 0)

    def generate_trace_id(self) -> int:
        return self.next[0]

    def generate_span_id(self) -> int:
        return self.next[1]


class _Delivery(SpanExporter):
    """Exports batches, and keeps those that failed for one retry at the end."""

    def __init__(self, exporter: SpanExporter, stored: Stored) -> None:
        self.exporter = exporter
        self._stored = stored
        self.refused: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self.exporter.export(spans)
        if result is not SpanExportResult.SUCCESS:
            self.refused.extend(spans)
        else:
            self._stored(f"{span.context.span_id:016x}" for span in spans if span.context)
        return result

    def retry(self) -> None:
        """Send the failed spans once more; the collector stores a span once."""
        waiting, self.refused = self.refused, []
        for start in range(0, len(waiting), _BATCH):
            self.export(waiting[start : start + _BATCH])

    def shutdown(self) -> None:
        """Keep the exporter open: `retry` still needs it."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self.exporter.force_flush(timeout_millis)
