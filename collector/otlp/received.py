"""Spans as an export brought them, their attributes read."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1 import trace_pb2

from collector.contract import (
    AttributeValue,
    Fact,
    Fields,
    Span,
    SpanEvent,
    SpanLink,
    SpanStatus,
)
from collector.errors import OtlpError
from collector.otlp import wire
from collector.otlp.values import read_attribute, read_attributes

MAX_UNIX_NS: Final = 2**63 - 1
KINDS: Final[Mapping[int, str]] = {2: "server", 3: "client", 4: "producer", 5: "consumer"}
"""By OTLP's numbers; all others are internal."""
STATUSES: Final[Mapping[int, SpanStatus]] = {1: SpanStatus.OK, 2: SpanStatus.ERROR}
"""By OTLP's numbers; all others are unset."""


class Resource(NamedTuple):
    """What the spans of one sender share."""

    attributes: dict[str, AttributeValue]
    raw: bytes
    """The attributes as sent: a message that has them as its field 1."""


class Attributes(NamedTuple):
    """A span's attributes, read."""

    fields: Fields
    """What they say of a generation by the contract."""
    facts: list[Fact]
    """What else they say by it, their content apart."""
    text: dict[str, AttributeValue]
    """The values of those that hold text."""
    text_sent: dict[str, bytes]
    """Those that hold text, as sent: each a `Span` message of one attribute."""
    has_system: bool
    """Whether `gen_ai.system` is among them, by which older conventions tell themselves."""
    rest: bytes
    """Those that hold no text, as sent: the attributes of a `Span` message."""

    def values(self) -> dict[str, AttributeValue]:
        """Return every attribute's value."""
        sent = b"".join((self.rest, *self.text_sent.values()))
        return dict(map(read_attribute, wire.Span.FromString(sent).attributes))


class ReceivedSpan(NamedTuple):
    """A span that can be stored."""

    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes | None
    name: str
    kind_number: int
    start_unix_ns: int
    end_unix_ns: int
    status_code: int
    status_message: str | None
    scope_name: str | None
    resource: Resource
    attributes: Attributes
    others: bytes
    """What else was sent and is kept: a `Span` message of events, links, trace state, flags, and
    of how many were dropped."""

    @property
    def kind(self) -> str:
        """As in `Span`."""
        return KINDS.get(self.kind_number, "internal")

    @property
    def status(self) -> SpanStatus:
        """As in `Span`."""
        return STATUSES.get(self.status_code, SpanStatus.UNSET)

    def span(self) -> Span:
        """Return the span, decoded; raises `OtlpError` where an event or link is garbled."""
        others = wire.Span.FromString(self.others)
        return Span(
            trace_id=self.trace_id.hex(),
            span_id=self.span_id.hex(),
            parent_span_id=None if self.parent_span_id is None else self.parent_span_id.hex(),
            name=self.name,
            kind=self.kind,
            start_unix_ns=self.start_unix_ns,
            end_unix_ns=self.end_unix_ns,
            status=self.status,
            status_message=self.status_message,
            scope_name=self.scope_name,
            attributes=self.attributes.values(),
            resource=self.resource.attributes,
            events=tuple(map(read_event, others.events)),
            links=tuple(map(read_link, others.links)),
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


def read_resource(raw: bytes) -> Resource:
    """Return what a `Resource` message holds; raises `OtlpError` where it is none."""
    try:
        sent = wire.Resource.FromString(raw).attributes
    except DecodeError as exc:
        raise OtlpError("a resource is garbled") from exc
    return Resource(dict(map(read_attribute, sent)), raw)


def read_event(raw: bytes) -> SpanEvent:
    """Return the event that a `Span.Event` message holds."""
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
