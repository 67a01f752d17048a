"""The parts of a span: OTLP messages to the contract's values and records."""

from typing import Final, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from collector.contract import AttributeValue, SpanEvent, SpanLink
from collector.errors import OtlpError
from collector.protobuf.values import read_attributes

MAX_UNIX_NS: Final = 2**63 - 1


class SpanParts(NamedTuple):
    """The attributes, events and links of a span."""

    attributes: dict[str, AttributeValue]
    events: tuple[SpanEvent, ...]
    links: tuple[SpanLink, ...]


def read_parts(raw: bytes) -> SpanParts:
    """Decode the parts of a `Span` message that the collector wrote."""
    span = trace_pb2.Span.FromString(raw)
    return SpanParts(
        attributes=read_attributes(span.attributes),
        events=tuple(read_event(event.SerializeToString()) for event in span.events),
        links=tuple(read_link(link.SerializeToString()) for link in span.links),
    )


def read_resource(raw: bytes) -> dict[str, AttributeValue]:
    """Decode the attributes of a `Resource` message that the collector wrote."""
    return read_attributes(resource_pb2.Resource.FromString(raw).attributes)


def read_event(raw: bytes) -> SpanEvent:
    """Decode a `Span.Event` message; raises `OtlpError` if it is malformed."""
    try:
        event = trace_pb2.Span.Event.FromString(raw)
    except DecodeError as exc:
        raise OtlpError("a span's event is garbled") from exc
    return SpanEvent(
        name=event.name,
        time_unix_ns=min(event.time_unix_nano, MAX_UNIX_NS),
        attributes=read_attributes(event.attributes),
    )


def read_link(raw: bytes) -> SpanLink:
    """Decode a `Span.Link` message; raises `OtlpError` if it is malformed."""
    try:
        link = trace_pb2.Span.Link.FromString(raw)
    except DecodeError as exc:
        raise OtlpError("a span's link is garbled") from exc
    return SpanLink(
        trace_id=link.trace_id.hex(),
        span_id=link.span_id.hex(),
        attributes=read_attributes(link.attributes),
    )
