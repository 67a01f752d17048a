"""OTLP bodies made of records, in both encodings: the one writer that tests share."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from collector.contract import AttributeValue, Span
from collector.otlp.body import Encoding
from collector.otlp.traces import ReceivedSpan, decode_traces

PROTOBUF = {"Content-Type": "application/x-protobuf"}
KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
STATUSES = {"unset": 0, "ok": 1, "error": 2}


def export_request(spans: Iterable[Span]) -> ExportTraceServiceRequest:
    """Return an export request with a resource of its own for each span."""
    request = ExportTraceServiceRequest()
    for span in spans:
        resource_spans = request.resource_spans.add()
        fill_attributes(resource_spans.resource.attributes, span.resource)
        scope_spans = resource_spans.scope_spans.add()
        scope_spans.scope.name = span.scope_name or ""
        out = scope_spans.spans.add()
        out.trace_id = bytes.fromhex(span.trace_id)
        out.span_id = bytes.fromhex(span.span_id)
        out.parent_span_id = bytes.fromhex(span.parent_span_id or "")
        out.name = span.name
        out.kind = KINDS[span.kind]
        out.start_time_unix_nano = span.start_unix_ns
        out.end_time_unix_nano = span.end_unix_ns
        out.status.code = STATUSES[span.status]
        out.status.message = span.status_message or ""
        fill_attributes(out.attributes, span.attributes)
        for event in span.events:
            sent = out.events.add(name=event.name, time_unix_nano=event.time_unix_ns)
            fill_attributes(sent.attributes, event.attributes)
        for link in span.links:
            to = {"trace_id": bytes.fromhex(link.trace_id), "span_id": bytes.fromhex(link.span_id)}
            fill_attributes(out.links.add(**to).attributes, link.attributes)
    return request


def body_of(spans: Iterable[Span]) -> bytes:
    """Write spans as an OTLP body in protobuf."""
    body: bytes = export_request(spans).SerializeToString()
    return body


def json_of(spans: Iterable[Span]) -> bytes:
    """Write spans as an OTLP body in JSON, ids in hexadecimal."""
    return json.dumps(json_document(spans)).encode()


def received(spans: Iterable[Span]) -> tuple[ReceivedSpan, ...]:
    """Return the spans as the collector has them once their body is decoded."""
    return decode_traces(body_of(spans), Encoding.PROTOBUF).received


def json_document(spans: Iterable[Span]) -> dict[str, Any]:
    """Return the same request as `export_request`, in OTLP's JSON mapping."""
    document = json_format.MessageToDict(export_request(spans))
    given = iter(spans)
    for resource_spans in document["resourceSpans"]:
        for scope_spans in resource_spans["scopeSpans"]:
            for out in scope_spans["spans"]:
                span = next(given)
                out["traceId"], out["spanId"] = span.trace_id, span.span_id
                if span.parent_span_id is not None:
                    out["parentSpanId"] = span.parent_span_id
                out["kind"] = KINDS[span.kind]
                out["status"] = {"code": STATUSES[span.status], "message": span.status_message}
    return document


def logs_request(
    records: Iterable[Mapping[str, Any]],
    *,
    scope: tuple[str, str] = ("judge", "2"),
    resource: Mapping[str, AttributeValue] | None = None,
) -> ExportLogsServiceRequest:
    """Return an export request of log records, each the fields of a `LogRecord`."""
    request = ExportLogsServiceRequest()
    resource_logs = request.resource_logs.add()
    fill_attributes(resource_logs.resource.attributes, resource or {})
    scope_logs = resource_logs.scope_logs.add()
    scope_logs.scope.name, scope_logs.scope.version = scope
    for record in records:
        fields = {name: value for name, value in record.items() if name != "attributes"}
        fill_attributes(scope_logs.log_records.add(**fields).attributes, record["attributes"])
    return request


def metrics_request(
    metrics: Iterable[Mapping[str, Any]], *, resource: Mapping[str, AttributeValue] | None = None
) -> ExportMetricsServiceRequest:
    """Return an export request of metrics, each in OTLP's JSON mapping."""
    request = ExportMetricsServiceRequest()
    resource_metrics = request.resource_metrics.add()
    fill_attributes(resource_metrics.resource.attributes, resource or {})
    scope_metrics = resource_metrics.scope_metrics.add()
    for metric in metrics:
        json_format.ParseDict(metric, scope_metrics.metrics.add())
    return request


def fill_attributes(pairs: Any, attributes: Mapping[str, AttributeValue]) -> None:
    """Write attributes into a repeated `KeyValue`."""
    for name, value in attributes.items():
        pair: KeyValue = pairs.add()
        pair.key = name
        fill_value(pair.value, value)


def fill_value(out: AnyValue, value: AttributeValue) -> None:
    """Write an attribute's value; None stays unset."""
    if isinstance(value, bool):
        out.bool_value = value
    elif isinstance(value, int):
        out.int_value = value
    elif isinstance(value, float):
        out.double_value = value
    elif isinstance(value, str):
        out.string_value = value
    elif isinstance(value, bytes):
        out.bytes_value = value
    elif isinstance(value, tuple):
        out.array_value.SetInParent()
        for item in value:
            fill_value(out.array_value.values.add(), item)
    elif isinstance(value, Mapping):
        out.kvlist_value.SetInParent()
        fill_attributes(out.kvlist_value.values, value)
