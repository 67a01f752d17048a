"""Conversion of received spans to the rows of the store, done before the write transaction."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from collector.content import DROP, ContentPolicy
from collector.contract import (
    Decoded,
    Fact,
    FactKind,
    Score,
    SpanStatus,
    assemble,
    interpret_resource,
)
from collector.contract.codec import default_error_type, default_repeat
from collector.contract.conservation import broken_laws
from collector.dialects import DRAFTGATE, is_contract, recognise, scores
from collector.ingest import redacted_messages
from collector.otlp.received import KINDS, STATUSES, Attributes, ReceivedSpan, Resource
from collector.store import carried, digests, generation_rows, payload, texts
from collector.store.span_rows import ResourceRow, SpanRows
from collector.store.texts import SHARED, Texts

_STATUSES: Final = {code: status.value for code, status in STATUSES.items()}
_UNSET: Final = SpanStatus.UNSET.value
_AHEAD_NS: Final = 3600 * 10**9
"""How far a sender's clock may be ahead of the collector's."""
_STARTS_LATER: Final = "times:starts_after_arrival"
_FAILED: Final = frozenset(code for code, status in STATUSES.items() if status is SpanStatus.ERROR)


def prepare(
    received: Sequence[ReceivedSpan], content: ContentPolicy = DROP
) -> tuple[SpanRows, ...]:
    """Return the rows of the spans, with the text that the policy keeps.

    Modifies its argument: generations' field mappings become their rows. Raises `OtlpError` if an
    attribute, event or link is malformed or nested too deeply.
    """
    # Stage by stage, not span by span: alternating stages would evict each other's data from the
    # processor's first-level cache.
    senders = _senders(received, content)
    meanings = [
        _meaning(item, sender, content) for item, sender in zip(received, senders, strict=True)
    ]
    shared = _shared_texts([item.attributes for item in received], content)
    payloads = payload.pack(
        redacted_messages.span(item.attributes.rest, item.others, content) for item in received
    )
    return tuple(
        SpanRows(
            (*_columns(item, content), sender.row.id, packed),
            sender.row,
            shared[number // SHARED],
            number % SHARED,
            *meaning,
        )
        for number, (item, sender, meaning, packed) in enumerate(
            zip(received, senders, meanings, payloads, strict=True)
        )
    )


class _Sender(NamedTuple):
    """A sender's resource, interpreted once for all its spans."""

    row: ResourceRow
    fields: Mapping[str, Any]
    """Fields that the resource sets on all its generations; Any: each field's type."""
    facts: tuple[Fact, ...]
    """The resource's other facts."""
    latest_start_unix_ns: int
    """A span that starts later is flagged."""


class _Meaning(NamedTuple):
    """The generation and scores in a span, in any dialect."""

    generation: generation_rows.Row | None = None
    enriches: bool = False
    scores: tuple[Score, ...] = ()
    quality: tuple[str, ...] = ()


def _senders(received: Sequence[ReceivedSpan], content: ContentPolicy) -> list[_Sender]:
    """Return each span's sender; spans with the same resource object share a sender."""
    known = {id(item.resource): item.resource for item in received}
    senders = {id_: _sender(resource, content) for id_, resource in known.items()}
    return [senders[id(item.resource)] for item in received]


def _sender(resource: Resource, content: ContentPolicy) -> _Sender:
    raw = redacted_messages.resource(resource.raw, content)
    facts = interpret_resource(resource.attributes)
    return _Sender(
        ResourceRow(digests.id_of(raw), payload.compress(raw)),
        {fact.name: fact.value for fact in facts if fact.kind is FactKind.FIELD},
        tuple(fact for fact in facts if fact.kind is not FactKind.FIELD),
        time.time_ns() + _AHEAD_NS,
    )


def _meaning(received: ReceivedSpan, sender: _Sender, content: ContentPolicy) -> _Meaning:
    attributes = received.attributes
    fields = attributes.fields
    if is_contract(fields.get("operation"), has_system=attributes.has_system):
        # A faster path with the same result as `recognise`.
        for name, value in sender.fields.items():
            fields.setdefault(name, value)
        fields["start_unix_ns"] = received.start_unix_ns
        fields["end_unix_ns"] = received.end_unix_ns
        failed = received.status_code in _FAILED
        if failed or attributes.facts or sender.facts:
            decoded = assemble(fields, (*sender.facts, *attributes.facts), failed=failed)
        else:  # the same result as `assemble` if all facts are fields
            default_repeat(fields)
            default_error_type(fields, failed=False)
            if flags := broken_laws(fields):
                fields["quality"] = flags
            decoded = Decoded(fields, {}, ())
        return _as_rows(received, sender, decoded, DRAFTGATE.name, content)
    span = received.span()
    recognised, judged = recognise(span), tuple(map(content.apply_score, scores(span)))
    if recognised is None:
        return _Meaning(scores=judged)
    decoded, dialect, enriches = recognised.decoded, recognised.dialect, recognised.enriches
    return _as_rows(received, sender, decoded, dialect, content, enriches=enriches, judged=judged)


def _as_rows(
    received: ReceivedSpan,
    sender: _Sender,
    decoded: Decoded,
    dialect: str,
    content: ContentPolicy,
    *,
    enriches: bool = False,
    judged: tuple[Score, ...] = (),
) -> _Meaning:
    if received.start_unix_ns > sender.latest_start_unix_ns:
        decoded.fields["quality"] = (*decoded.fields.get("quality", ()), _STARTS_LATER)
    generation = generation_rows.to_row(decoded.fields, dialect)
    generation["trace_id"] = received.trace_id
    generation["span_id"] = received.span_id
    if "error_type" in generation:
        generation["error_type"] = content.apply_name(generation["error_type"])
    if received.attributes.text:
        generation["carries"] = carried.of(received.attributes.text)
    return _Meaning(generation, enriches, judged, decoded.fields.get("quality", ()))


def _columns(received: ReceivedSpan, content: ContentPolicy) -> tuple[Any, ...]:
    """Return the values of `COLUMNS` from trace_id to scope_name; Any: as there."""
    # Unpacked at once, for speed: attribute lookups cost time on every span.
    trace_id, span_id, parent_id, name, kind, start, end, code, message, scope, *_ = received
    return (
        trace_id,
        span_id,
        parent_id,
        content.apply_name(name),
        KINDS.get(kind, "internal"),
        start,
        end,
        _STATUSES.get(code, _UNSET),
        None if message is None else content.apply_message(message),
        scope,
    )


def _shared_texts(spans: Sequence[Attributes], content: ContentPolicy) -> list[Texts | None]:
    """Return the text frames of the spans, one per `SHARED` spans."""
    pieces = (spans[at : at + SHARED] for at in range(0, len(spans), SHARED))
    if not content.captures:
        return [None for _ in pieces]
    return [texts.pack(_kept_texts(some, content)) for some in pieces]


def _kept_texts(spans: Sequence[Attributes], content: ContentPolicy) -> list[list[bytes]]:
    """Return the text messages of each span that the policy keeps.

    Most text needs no redaction, so all texts are searched together first, and one by one only if
    something is found.
    """
    if content.keeps_as_sent([value for span in spans for value in span.text.values()]):
        return [list(span.text_sent.values()) for span in spans]
    return [_kept_text(span, content) for span in spans]


def _kept_text(attributes: Attributes, content: ContentPolicy) -> list[bytes]:
    """Return a span's text messages: the sender's bytes unless redacted."""
    text, sent = attributes.text, attributes.text_sent
    if not text:
        return []
    return [
        sent[name]
        if value is text[name] or value == text[name]
        else redacted_messages.attribute(name, value)
        for name, value in content.apply(text).items()
    ]
