"""OTLP trace bodies to spans.

Both encodings end in the same protobuf message and are read by the same code, so that they cannot
store different rows.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from collector import otlp_body, otlp_wire
from collector.contract import AttributeValue, Span, SpanEvent, SpanLink, SpanStatus
from collector.errors import OtlpError
from collector.otlp_body import Encoding
from collector.otlp_values import read_attributes, read_value

_MAX_UNIX_NS = 2**63 - 1
_NO_TRACE = bytes(16)
_NO_SPAN = bytes(8)
_WANTED_TIME = "{}: wanted Unix nanoseconds from 1 to 2^63 - 1"
_KINDS = {2: "server", 3: "client", 4: "producer", 5: "consumer"}
_STATUSES = {1: SpanStatus.OK, 2: SpanStatus.ERROR}


class Resource(NamedTuple):
    """What the spans of one sender share."""

    attributes: dict[str, AttributeValue]
    raw: bytes
    """The attributes as sent: a message that has them as its field 1."""


class ReceivedSpan(NamedTuple):
    """A span that can be stored, its attributes still as they came."""

    message: Any
    """The `otlp_wire.Span`; Any: protobuf makes its class."""
    parent_span_id: bytes | None
    scope_name: str | None
    resource: Resource

    @property
    def kind(self) -> str:
        """As in `Span`."""
        return _KINDS.get(self.message.kind, "internal")

    @property
    def status(self) -> SpanStatus:
        """As in `Span`."""
        return _STATUSES.get(self.message.status.code, SpanStatus.UNSET)

    def span(self, attributes: Mapping[str, AttributeValue] | None = None) -> Span:
        """Return the span, decoded; `attributes` are its own where they were read already.

        Raises `OtlpError` where an attribute, event or link is garbled or nested too deeply.
        """
        message, parent = self.message, self.parent_span_id
        if attributes is None:
            attributes = dict(map(read_attribute, message.attributes))
        return Span(
            trace_id=message.trace_id.hex(),
            span_id=message.span_id.hex(),
            parent_span_id=None if parent is None else parent.hex(),
            name=message.name,
            kind=self.kind,
            start_unix_ns=message.start_time_unix_nano,
            end_unix_ns=message.end_time_unix_nano,
            status=self.status,
            status_message=message.status.message or None,
            scope_name=self.scope_name,
            attributes=attributes,
            resource=self.resource.attributes,
            events=tuple(map(read_event, message.events)),
            links=tuple(map(read_link, message.links)),
        )


class Received(NamedTuple):
    """What one body held."""

    received: tuple[ReceivedSpan, ...]
    rejected: tuple[str, ...]
    """For each span that cannot be stored, the reason."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans that can be stored, decoded."""
        return tuple(item.span() for item in self.received)


class _RejectedError(Exception):
    """A span cannot be stored; the message says why."""


def decode_traces(body: bytes, encoding: Encoding) -> Received:
    """Return the spans of an export request, their attributes unread.

    Raises `OtlpError` where the body cannot be decoded at all. A span that was decoded but cannot
    be stored (an id of the wrong length or all zeros, no start or end, a time beyond int64) is
    named in `rejected` and does not keep the others out.
    """
    message = _wire_message(body, encoding)
    received: list[ReceivedSpan] = []
    rejected: list[str] = []
    for resource_spans in message.resource_spans:
        attributes = resource_spans.resource.attributes
        resource = Resource(
            dict(map(read_attribute, attributes)), resource_spans.resource.SerializeToString()
        )
        for scope_spans in resource_spans.scope_spans:
            scope_name = scope_spans.scope.name or None
            for span in scope_spans.spans:
                try:
                    _check(span)
                    parent = _parent_id(span.parent_span_id)
                except _RejectedError as exc:
                    rejected.append(str(exc))
                else:
                    received.append(ReceivedSpan(span, parent, scope_name, resource))
    return Received(tuple(received), tuple(rejected))


def read_attribute(raw: bytes) -> tuple[str, AttributeValue]:
    """Return the key and the value that a `KeyValue` message holds.

    Raises `OtlpError` where the bytes are no attribute, or one that is nested too deeply.
    """
    try:
        pair = KeyValue.FromString(raw)
    except DecodeError as exc:
        raise OtlpError("an attribute is garbled: not UTF-8, or nested too deeply") from exc
    return (pair.key, read_value(pair.value))


def _wire_message(body: bytes, encoding: Encoding) -> Any:  # Any: protobuf makes the class
    message = otlp_wire.ExportTraceServiceRequest()
    if encoding is Encoding.JSON:
        full = otlp_body.parse(body, encoding, ExportTraceServiceRequest(), _rewrite_ids)
        body, encoding = full.SerializeToString(), Encoding.PROTOBUF
    return otlp_body.parse(body, encoding, message, _rewrite_ids)


def _rewrite_ids(document: otlp_body.JsonObject) -> None:
    for span in otlp_body.objects(document, "resourceSpans", "scopeSpans", "spans"):
        otlp_body.rewrite_hex(span, "traceId", "spanId", "parentSpanId")
        for link in otlp_body.objects(span, "links"):
            otlp_body.rewrite_hex(link, "traceId", "spanId")


def read_event(raw: bytes) -> SpanEvent:
    """Return the event that a `Span.Event` message holds."""
    try:
        event = trace_pb2.Span.Event.FromString(raw)
    except DecodeError as exc:
        raise OtlpError("a span's event is garbled") from exc
    return SpanEvent(
        name=event.name,
        time_unix_ns=min(event.time_unix_nano, _MAX_UNIX_NS),
        attributes=read_attributes(event.attributes),
    )


def read_link(raw: bytes) -> SpanLink:
    """Return the link that a `Span.Link` message holds."""
    try:
        link = trace_pb2.Span.Link.FromString(raw)
    except DecodeError as exc:
        raise OtlpError("a span's link is garbled") from exc
    return SpanLink(
        trace_id=link.trace_id.hex(),
        span_id=link.span_id.hex(),
        attributes=read_attributes(link.attributes),
    )


def _check(span: Any) -> None:  # Any: `otlp_wire.Span`
    """Raise `_RejectedError` where the span cannot be stored."""
    _check_id("trace_id", span.trace_id, _NO_TRACE)
    _check_id("span_id", span.span_id, _NO_SPAN)
    if not 0 < span.start_time_unix_nano <= _MAX_UNIX_NS:
        raise _RejectedError(_WANTED_TIME.format("start_time_unix_nano"))
    if not 0 < span.end_time_unix_nano <= _MAX_UNIX_NS:
        raise _RejectedError(_WANTED_TIME.format("end_time_unix_nano"))


def _check_id(name: str, value: bytes, zero: bytes) -> None:
    if len(value) != len(zero) or value == zero:
        raise _RejectedError(
            f"{name}: wanted {len(zero)} bytes ({2 * len(zero)} hexadecimal digits), not all zero"
        )


def _parent_id(value: bytes) -> bytes | None:
    if value in (b"", _NO_SPAN):
        return None
    _check_id("parent_span_id", value, _NO_SPAN)
    return value
