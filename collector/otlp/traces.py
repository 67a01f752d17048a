"""OTLP trace bodies to spans.

Both encodings are read by the same code, so that they store the same rows: JSON is first converted
to protobuf. Plain bodies are read by the compiled reader, if it was built; a test checks that it
returns the same spans.
"""

from collections.abc import Sequence
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.dialects import SYSTEM
from collector.errors import RejectedError
from collector.otlp import attribute_facts, native
from collector.otlp import body as otlp_body
from collector.otlp.body import Encoding
from collector.otlp.received import (
    Attributes,
    Received,
    ReceivedSpan,
    Resource,
    read_resource,
)
from collector.protobuf import wire
from collector.protobuf.parts import MAX_UNIX_NS

_NO_TRACE = bytes(16)
_NO_SPAN = bytes(8)
# Fields of a span without a column, besides attributes, events and links.
_UNTYPED: Final = (
    "trace_state",
    "dropped_attributes_count",
    "dropped_events_count",
    "dropped_links_count",
    "flags",
)
_WANTED_TIME = "{}: wanted Unix nanoseconds from 1 to 2^63 - 1"


def decode_traces(body: bytes, encoding: Encoding) -> Received:
    """Return the spans of an export request.

    Raises `OtlpError` if any of it cannot be decoded. A span that was decoded but cannot be stored
    (an id of the wrong length or all zeros, no start or end, a time beyond int64) is listed in
    `rejected` without affecting the others.
    """
    body = to_protobuf(body, encoding)
    plain = native.read(body)
    if plain is not None:
        return Received(tuple(plain), ())
    message = wire.ExportTraceServiceRequest()
    return read_message(otlp_body.parse(body, Encoding.PROTOBUF, message, _rewrite_ids))


def to_protobuf(body: bytes, encoding: Encoding) -> bytes:
    """Return a body as protobuf; raises `OtlpError` for JSON that cannot be decoded."""
    if encoding is Encoding.PROTOBUF:
        return body
    full = otlp_body.parse(body, encoding, ExportTraceServiceRequest(), _rewrite_ids)
    return full.SerializeToString()  # type: ignore[no-any-return]  # the library is untyped


def read_message(message: Any) -> Received:
    """Return the spans of a `wire.ExportTraceServiceRequest`; Any: a generated class."""
    received: list[ReceivedSpan] = []
    rejected: list[str] = []
    for resource_spans in message.resource_spans:
        resource = read_resource(resource_spans.resource.SerializeToString())
        for scope_spans in resource_spans.scope_spans:
            scope_name = scope_spans.scope.name or None
            for span in scope_spans.spans:
                try:
                    received.append(_received(span, scope_name, resource))
                except RejectedError as exc:
                    rejected.append(str(exc))
    return Received(tuple(received), tuple(rejected))


def _received(span: Any, scope_name: str | None, resource: Resource) -> ReceivedSpan:
    """Return the stored parts of a `wire.Span`; Any: a generated class."""
    _check(span)
    others = wire.Span(events=span.events, links=span.links)
    for name in _UNTYPED:
        if value := getattr(span, name):
            setattr(others, name, value)
    return ReceivedSpan(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=_parent_id(span.parent_span_id),
        name=span.name,
        kind_number=span.kind,
        start_unix_ns=span.start_time_unix_nano,
        end_unix_ns=span.end_time_unix_nano,
        status_code=span.status.code,
        status_message=span.status.message or None,
        scope_name=scope_name,
        resource=resource,
        attributes=_attributes(span.attributes),
        others=others.SerializeToString(),
    )


def _attributes(sent: Sequence[bytes]) -> Attributes:
    read = {facts.key: (facts, raw) for raw in sent for facts in (attribute_facts.read(raw),)}
    rest = [raw for facts, raw in read.values() if not facts.is_text]
    return Attributes(
        fields={f.field: f.field_value for f, _ in read.values() if f.field is not None},
        facts=[f.fact for f, _ in read.values() if f.fact is not None],
        text={f.key: f.value for f, _ in read.values() if f.is_text},
        text_sent={f.key: _as_span([raw]) for f, raw in read.values() if f.is_text},
        has_system=SYSTEM in read,
        rest=_as_span(rest),
    )


def _as_span(attributes: Sequence[bytes]) -> bytes:
    return wire.Span(attributes=attributes).SerializeToString()  # type: ignore[no-any-return]  # the library is untyped


def _rewrite_ids(document: otlp_body.JsonObject) -> None:
    for span in otlp_body.objects(document, "resourceSpans", "scopeSpans", "spans"):
        otlp_body.rewrite_hex(span, "traceId", "spanId", "parentSpanId")
        for link in otlp_body.objects(span, "links"):
            otlp_body.rewrite_hex(link, "traceId", "spanId")


def _check(span: Any) -> None:  # Any: `wire.Span`
    """Raise `RejectedError` if the span cannot be stored."""
    _check_id("trace_id", span.trace_id, _NO_TRACE)
    _check_id("span_id", span.span_id, _NO_SPAN)
    if not 0 < span.start_time_unix_nano <= MAX_UNIX_NS:
        raise RejectedError(_WANTED_TIME.format("start_time_unix_nano"))
    if not 0 < span.end_time_unix_nano <= MAX_UNIX_NS:
        raise RejectedError(_WANTED_TIME.format("end_time_unix_nano"))


def _check_id(name: str, value: bytes, zero: bytes) -> None:
    if len(value) != len(zero) or value == zero:
        raise RejectedError(
            f"{name}: wanted {len(zero)} bytes ({2 * len(zero)} hexadecimal digits), not all zero"
        )


def _parent_id(value: bytes) -> bytes | None:
    if value in (b"", _NO_SPAN):
        return None
    _check_id("parent_span_id", value, _NO_SPAN)
    return value
