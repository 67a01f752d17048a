"""Spans to the rows that they are stored as, made before the writer's turn."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from collector.content import DROP, ContentPolicy
from collector.contract import (
    AttributeValue,
    Fact,
    Fields,
    Score,
    SpanStatus,
    assemble,
    interpret_resource,
)
from collector.dialects import DRAFTGATE, is_contract, recognise, scores
from collector.otlp import ReceivedSpan, Resource
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
    received: Iterable[ReceivedSpan], content: ContentPolicy = DROP
) -> tuple[SpanRows, ...]:
    """Return the rows of the spans, with what the policy keeps of their text.

    Raises `OtlpError` where an attribute, event or link is garbled or nested too deeply.
    """
    senders: dict[int, _Sender] = {}  # spans of one resource share the object
    rows = []
    for item in received:
        sender = senders.get(id(item.resource))
        if sender is None:
            sender = senders[id(item.resource)] = _sender(item.resource)
        rows.append(_rows(item, sender, content))
    return tuple(rows)


class _Sender(NamedTuple):
    """What is made of a resource once."""

    row: ResourceRow
    facts: tuple[Fact, ...]


def _sender(resource: Resource) -> _Sender:
    row = ResourceRow(digests.id_of(resource.raw), payload.pack_resource(resource.raw))
    return _Sender(row, interpret_resource(resource.attributes))


def _rows(received: ReceivedSpan, sender: _Sender, content: ContentPolicy) -> SpanRows:
    message = received.message
    attributes: dict[str, AttributeValue] = {}
    rest: list[bytes] = []
    text: dict[str, bytes] = {}
    fields: Fields = {}
    facts: list[Fact] = []
    known = attribute_facts.KNOWN.get
    for raw in message.attributes:
        key, value, is_text, field, field_value, fact = known(raw) or attribute_facts.read(raw)
        attributes[key] = value
        if field is not None:
            fields[field] = field_value
        if is_text:
            text[key] = raw
        else:
            rest.append(raw)
        if fact is not None:
            facts.append(fact)
    if len(attributes) != len(message.attributes):
        return _rows(_with_each_key_once(received), sender, content)
    trace_id, span_id, status = message.trace_id, message.span_id, received.status
    start, end = message.start_time_unix_nano, message.end_time_unix_nano
    generation: generation_rows.Row | None = None
    quality: tuple[str, ...] = ()
    enriches, judged = False, tuple[Score, ...]()
    if is_contract(attributes):
        # The short way to what `recognise` says of such a span.
        facts.extend(sender.facts)
        fields["start_unix_ns"], fields["end_unix_ns"] = start, end
        decoded = assemble(fields, facts, failed=status is SpanStatus.ERROR)
        quality = decoded.fields.get("quality", ())
        generation = generation_rows.to_row(decoded.fields, DRAFTGATE.name)
    else:
        span = received.span(attributes)
        judged = tuple(map(content.apply_score, scores(span)))
        if (recognised := recognise(span)) is not None:
            enriches = recognised.enriches
            quality = recognised.decoded.fields.get("quality", ())
            generation = generation_rows.to_row(recognised.decoded.fields, recognised.dialect)
    if generation is not None:
        generation["trace_id"], generation["span_id"] = trace_id, span_id
    return SpanRows(
        span=(
            trace_id,
            span_id,
            received.parent_span_id,
            message.name,
            received.kind,
            start,
            end,
            status.value,
            content.apply_message(message.status.message or None),
            received.scope_name,
            sender.row.id,
            payload.pack(rest, message, content),
        ),
        resource=sender.row,
        text=_kept_text(text, attributes, content),
        generation=generation,
        enriches=enriches,
        scores=judged,
        quality=quality,
    )


def _with_each_key_once(received: ReceivedSpan) -> ReceivedSpan:
    """Return the span with the last attribute of each key, the one that counts."""
    sent = received.message.attributes
    last = {attribute_facts.read(raw).key: raw for raw in sent}
    sent[:] = last.values()
    return received


def _kept_text(
    text: Mapping[str, bytes], attributes: Mapping[str, AttributeValue], content: ContentPolicy
) -> bytes | None:
    """Return what is stored of text attributes: their own bytes where nothing was redacted."""
    if not text or not content.captures:
        return None
    kept = content.apply({name: attributes[name] for name in text})
    return payload.pack_attributes(
        text[name]
        if value is attributes[name] or value == attributes[name]
        else write_attribute(name, value).SerializeToString()
        for name, value in kept.items()
    )
