"""Received spans, with their attributes interpreted."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from collector.contract import (
    AttributeValue,
    Fact,
    Fields,
    Span,
    SpanStatus,
)
from collector.errors import OtlpError
from collector.protobuf import wire
from collector.protobuf.parts import read_event, read_link
from collector.protobuf.values import read_attribute

KINDS: Final[Mapping[int, str]] = {2: "server", 3: "client", 4: "producer", 5: "consumer"}
"""Span kinds by OTLP's numbers; all others are internal."""
STATUSES: Final[Mapping[int, SpanStatus]] = {1: SpanStatus.OK, 2: SpanStatus.ERROR}
"""Statuses by OTLP's numbers; all others are unset."""


class Resource(NamedTuple):
    """The resource shared by the spans of one sender."""

    attributes: dict[str, AttributeValue]
    raw: bytes
    """The attributes as sent: a message with them as field 1."""


class Attributes(NamedTuple):
    """A span's interpreted attributes."""

    fields: Fields
    """The generation fields that they set, by the contract."""
    facts: list[Fact]
    """Their other facts by the contract, without content."""
    text: dict[str, AttributeValue]
    """The values of text attributes."""
    text_sent: dict[str, bytes]
    """The text attributes as sent: each a `Span` message with one attribute."""
    has_system: bool
    """Whether `gen_ai.system` is among them, which marks older conventions."""
    rest: bytes
    """The other attributes as sent: a `Span` message."""

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
    """The other stored fields: a `Span` message with events, links, trace state, flags and dropped
    counts."""

    @property
    def kind(self) -> str:
        """As in `Span`."""
        return KINDS.get(self.kind_number, "internal")

    @property
    def status(self) -> SpanStatus:
        """As in `Span`."""
        return STATUSES.get(self.status_code, SpanStatus.UNSET)

    def span(self) -> Span:
        """Return the decoded span; raises `OtlpError` if an event or link is malformed."""
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
    """The decoded spans of one body."""

    received: tuple[ReceivedSpan, ...]
    rejected: tuple[str, ...]
    """The reason for each span that cannot be stored."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The decoded spans that can be stored."""
        return tuple(item.span() for item in self.received)


def read_resource(raw: bytes) -> Resource:
    """Decode a `Resource` message; raises `OtlpError` if it is malformed."""
    try:
        sent = wire.Resource.FromString(raw).attributes
    except DecodeError as exc:
        raise OtlpError("a resource is garbled") from exc
    return Resource(dict(map(read_attribute, sent)), raw)
