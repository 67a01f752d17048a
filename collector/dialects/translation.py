"""Translation of a dialect's attributes to the contract's names, which the contract then decodes.

So every dialect accepts the contract's own attributes (`draftgate.*`, `spec_decode.*`, …) that a
span processor or baggage added, and has the contract's checks of types and laws. A value that a
dialect cannot convert is passed on as sent, and the contract flags it.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from collector.contract import (
    AttributeValue,
    Content,
    Decoded,
    Span,
    SpanStatus,
    attributes,
    decode,
)

_MAX_INT = 2**63 - 1

Convert = Callable[[AttributeValue], AttributeValue]
Table = Mapping[str, str | tuple[str, Convert]]
"""A dialect's attribute names to the contract's; the first sent of several synonyms wins."""


class Translated(NamedTuple):
    """A value under the contract's name, and the attribute in which it was sent."""

    name: str | None
    """None if the sent attribute cannot be read at all."""
    value: AttributeValue
    sent_as: str


def renamed(span: Span, table: Table) -> Iterator[Translated]:
    """Yield the span's attributes that are in the table, translated."""
    sent = span.attributes
    for sent_as, entry in table.items():
        value = sent.get(sent_as)
        if value is not None:
            if isinstance(entry, str):
                yield Translated(entry, value, sent_as)
            else:
                yield Translated(entry[0], entry[1](value), sent_as)


def json_object(span: Span, sent_as: str, table: Table) -> Iterator[Translated]:
    """Yield the keys of a JSON object in one attribute that are in the table, translated."""
    value = span.attributes.get(sent_as)
    if value is None:
        return
    document = load_json(value) if isinstance(value, str) else value
    if not isinstance(document, Mapping):
        yield Translated(None, value, sent_as)
        return
    for key, entry in table.items():
        item = document.get(key)
        if item is not None:
            name, convert = (entry, _as_attribute) if isinstance(entry, str) else entry
            yield Translated(name, convert(item), sent_as)


def decode_translated(span: Span, translated: Iterable[Translated]) -> Decoded:
    """Decode the span with the translated attributes added to its own.

    An attribute sent with the contract's name wins over a translation. Problems name the attribute
    as it was sent.
    """
    read = dict(span.attributes)
    origins: dict[str, str] = {}
    unreadable: dict[str, None] = {}  # a set that keeps the order
    for name, value, sent_as in translated:
        if name is None:
            unreadable[f"type:{sent_as}"] = None
        elif name not in origins and (name == sent_as or read.get(name) is None):
            read[name] = value
            origins[name] = sent_as
    if span.status is SpanStatus.ERROR and attributes.ERROR_TYPE not in read:
        read[attributes.ERROR_TYPE] = _exception_type(span)
    decoded = decode(replace(span, attributes=read))
    if not decoded.problems and not unreadable:
        return decoded
    return _as_sent(decoded, origins, tuple(unreadable))


def contract_content(
    text: Mapping[str, AttributeValue],
    *,
    input_messages: str | None = None,
    output_messages: str | None = None,
) -> Content | None:
    """Return the content under the contract's names; the given messages fill missing ones."""
    filled = dict(text)
    for name, messages in (
        (attributes.GEN_AI_INPUT_MESSAGES, input_messages),
        (attributes.GEN_AI_OUTPUT_MESSAGES, output_messages),
    ):
        if messages is not None and filled.get(name) is None:
            filled[name] = messages
    # The contract only decodes whole spans, so put the text into an otherwise empty one.
    bare = Span(trace_id="", span_id="", name="", start_unix_ns=0, end_unix_ns=0, attributes=filled)
    return decode(bare).generation.content


def load_json(text: str) -> Any:  # Any: a JSON value
    """Return the JSON value, or None if the text is not JSON or cannot be stored."""
    try:
        document = json.loads(text)
        if "\\u" in text:
            # JSON can escape a lone surrogate, which no database can store as text.
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return document


def string_list(value: AttributeValue) -> AttributeValue:
    """Return an array, given a JSON list, a string with a JSON list, or one plain string."""
    if isinstance(value, str):
        loaded = load_json(value) if value.startswith("[") else None
        return tuple(loaded) if isinstance(loaded, list) else (value,)
    return _as_attribute(value)


def _as_attribute(value: Any) -> AttributeValue:  # Any: a JSON value
    # JSON integers may exceed OTLP's int64: infinity makes the contract flag them.
    if isinstance(value, int) and abs(value) > _MAX_INT:
        return math.inf
    return tuple(value) if isinstance(value, list) else value


def _exception_type(span: Span) -> AttributeValue:
    """Return the type of the first exception recorded on the span, if any."""
    for event in span.events:
        if event.name == "exception":
            return event.attributes.get("exception.type")
    return None


def _as_sent(decoded: Decoded, origins: Mapping[str, str], unreadable: tuple[str, ...]) -> Decoded:
    def sent(flag: str) -> str:
        group, found, name = flag.rpartition("type:")
        return f"{group}type:{origins.get(name, name)}" if found else flag

    # One attribute may set several fields, so remove duplicates.
    problems = dict.fromkeys((*map(sent, decoded.problems), *unreadable))
    quality = dict.fromkeys((*map(sent, decoded.fields.get("quality", ())), *unreadable))
    fields = decoded.fields | {"quality": tuple(quality)}
    return Decoded(fields, decoded.content, tuple(problems))
