"""Spans to the rows that they are stored as, made before the writer's turn."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from collector.content import DROP, ContentPolicy
from collector.contract import (
    AttributeValue,
    Decoded,
    Fact,
    Fields,
    Score,
    SpanStatus,
    assemble,
    interpret_resource,
)
from collector.dialects import DRAFTGATE, is_contract, recognise, scores
from collector.otlp import ReceivedSpan
from collector.otlp_values import write_attribute
from collector.store import attribute_facts, digests, generation_rows, payload

COLUMNS = (
    "id",
    "trace_id",
    "span_id",
    "parent_span_id",
    "name",
    "kind",
    "start_unix_ns",
    "end_unix_ns",
    "status",
    "status_message",
    "scope_name",
    "resource_id",
    "payload",
)


class ResourceRow(NamedTuple):
    """What the spans of one sender share."""

    id: int
    attributes: bytes


class SpanRows(NamedTuple):
    """One span's rows, still without the id that they will share."""

    span: tuple[Any, ...]  # Any: one value for each of COLUMNS but the id
    resource: ResourceRow
    text: bytes | None
    """Text attributes; None where the span has none."""
    generation: generation_rows.Row | None
    enriches: bool
    """The generation is the engine's side of one whose client may send a span too."""
    scores: tuple[Score, ...]
    quality: tuple[str, ...]
    """The flags of the generation."""

    @property
    def key(self) -> tuple[bytes, bytes]:
        """Trace id and span id."""
        return self.span[:2]


def prepare(
    received: Sequence[ReceivedSpan], content: ContentPolicy = DROP
) -> tuple[SpanRows, ...]:
    """Return the rows of the spans, with what the policy keeps of their text.

    Raises `OtlpError` where an attribute, event or link is garbled or nested too deeply.
    """
    # Stage by stage, not span by span: each fills the processor's nearest cache with what it works
    # on, and taking turns they would evict each other's.
    senders = _senders(received)
    read = [_read(item.message) for item in received]
    meanings = [
        _meaning(item, attributes, sender, content)
        for item, attributes, sender in zip(received, read, senders, strict=True)
    ]
    kept = [_kept_text(item, content) for item in read]
    texts = [payload.pack_attributes(raws) if raws else None for raws in kept]
    payloads = [
        payload.pack(attributes.rest, item.message, content)
        for item, attributes in zip(received, read, strict=True)
    ]
    return tuple(
        SpanRows((*_columns(item, content), sender.row.id, packed), sender.row, text, *meaning)
        for item, sender, meaning, text, packed in zip(
            received, senders, meanings, texts, payloads, strict=True
        )
    )


class _Sender(NamedTuple):
    """What is made of a resource once."""

    row: ResourceRow
    facts: tuple[Fact, ...]


class _Attributes(NamedTuple):
    """A span's attributes, read."""

    values: dict[str, AttributeValue]
    rest: list[bytes]
    """Those that hold no text, as sent."""
    text: dict[str, bytes]
    """Those that hold text, as sent, by key."""
    fields: Fields
    """What they say of a generation by the contract."""
    facts: list[Fact]
    """What else they say by it."""


class _Meaning(NamedTuple):
    """What the span says, by whichever dialect."""

    generation: generation_rows.Row | None = None
    enriches: bool = False
    scores: tuple[Score, ...] = ()
    quality: tuple[str, ...] = ()


def _senders(received: Sequence[ReceivedSpan]) -> list[_Sender]:
    """Return each span's sender; spans of one resource share the object."""
    known = {id(item.resource): item.resource for item in received}
    senders = {
        id_: _Sender(
            ResourceRow(digests.id_of(resource.raw), payload.pack_resource(resource.raw)),
            interpret_resource(resource.attributes),
        )
        for id_, resource in known.items()
    }
    return [senders[id(item.resource)] for item in received]


def _read(message: Any) -> _Attributes:  # Any: `otlp_wire.Span`
    values: dict[str, AttributeValue] = {}
    rest: list[bytes] = []
    text: dict[str, bytes] = {}
    fields: Fields = {}
    facts: list[Fact] = []
    known = attribute_facts.KNOWN.get
    for raw in message.attributes:
        key, value, is_text, field, field_value, fact = known(raw) or attribute_facts.read(raw)
        values[key] = value
        if field is not None:
            fields[field] = field_value
        if is_text:
            text[key] = raw
        else:
            rest.append(raw)
        if fact is not None:
            facts.append(fact)
    if len(values) != len(message.attributes):
        _keep_each_key_once(message)
        return _read(message)
    return _Attributes(values, rest, text, fields, facts)


def _keep_each_key_once(message: Any) -> None:  # Any: `otlp_wire.Span`
    """Leave of the attributes with one key the last, the one that counts."""
    last = {attribute_facts.read(raw).key: raw for raw in message.attributes}
    message.attributes[:] = last.values()


def _meaning(
    received: ReceivedSpan, read: _Attributes, sender: _Sender, content: ContentPolicy
) -> _Meaning:
    if is_contract(read.values):
        # The short way to what `recognise` says of such a span.
        message = received.message
        fields = read.fields
        fields["start_unix_ns"] = message.start_time_unix_nano
        fields["end_unix_ns"] = message.end_time_unix_nano
        failed = received.status is SpanStatus.ERROR
        decoded = assemble(fields, (*read.facts, *sender.facts), failed=failed)
        return _as_rows(received, decoded, DRAFTGATE.name, enriches=False, judged=())
    span = received.span(read.values)
    recognised, judged = recognise(span), tuple(map(content.apply_score, scores(span)))
    if recognised is None:
        return _Meaning(scores=judged)
    decoded, dialect, enriches = recognised.decoded, recognised.dialect, recognised.enriches
    return _as_rows(received, decoded, dialect, enriches=enriches, judged=judged)


def _as_rows(
    received: ReceivedSpan,
    decoded: Decoded,
    dialect: str,
    *,
    enriches: bool,
    judged: tuple[Score, ...],
) -> _Meaning:
    generation = generation_rows.to_row(decoded.fields, dialect)
    generation["trace_id"] = received.message.trace_id
    generation["span_id"] = received.message.span_id
    return _Meaning(generation, enriches, judged, decoded.fields.get("quality", ()))


def _columns(received: ReceivedSpan, content: ContentPolicy) -> tuple[Any, ...]:
    """Return the values of `COLUMNS` from the trace id to the scope's name; Any: as there."""
    message = received.message
    return (
        message.trace_id,
        message.span_id,
        received.parent_span_id,
        message.name,
        received.kind,
        message.start_time_unix_nano,
        message.end_time_unix_nano,
        received.status.value,
        content.apply_message(message.status.message or None),
        received.scope_name,
    )


def _kept_text(read: _Attributes, content: ContentPolicy) -> list[bytes]:
    """Return what is stored of text attributes: their own bytes where nothing was redacted."""
    text, values = read.text, read.values
    if not text or not content.captures:
        return []
    kept = content.apply({name: values[name] for name in text})
    return [
        text[name]
        if value is values[name] or value == values[name]
        else write_attribute(name, value).SerializeToString()
        for name, value in kept.items()
    ]
