"""A span in other words: its attributes are renamed to the contract's, which then reads them.

So every dialect honours the contract's own attributes (`draftgate.*`, `spec_decode.*`, …) that a
span processor or baggage added, and checks types and laws as the contract does. What a dialect
cannot convert it passes on as sent, for the contract to flag.
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
"""A dialect's names to the contract's; of two that mean the same, the first sent wins."""


class Translated(NamedTuple):
    """A value under the contract's name, and the attribute that it was sent in."""

    name: str | None
    """None where the attribute sent cannot be read at all."""
    value: AttributeValue
    sent_as: str


def renamed(span: Span, table: Table) -> Iterator[Translated]:
    """Yield what the span has of the table's attributes."""
    sent = span.attributes
    for sent_as, entry in table.items():
        value = sent.get(sent_as)
        if value is not None:
            if isinstance(entry, str):
                yield Translated(entry, value, sent_as)
            else:
                yield Translated(entry[0], entry[1](value), sent_as)


def json_object(span: Span, sent_as: str, table: Table) -> Iterator[Translated]:
    """Yield what a JSON object in one attribute has of the table's keys."""
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
    """Read the span with what was translated put beside its own attributes.

    An attribute sent under the contract's own name wins over its translation. A problem is named
    by the attribute as it was sent.
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
    """Return the content under the contract's names; messages given fill what is not there."""
    filled = dict(text)
    for name, messages in (
        (attributes.GEN_AI_INPUT_MESSAGES, input_messages),
        (attributes.GEN_AI_OUTPUT_MESSAGES, output_messages),
    ):
        if messages is not None and filled.get(name) is None:
            filled[name] = messages
    # The contract decodes whole spans only, so the text travels in an otherwise empty one.
    bare = Span(trace_id="", span_id="", name="", start_unix_ns=0, end_unix_ns=0, attributes=filled)
    return decode(bare).generation.content


def load_json(text: str) -> Any:  # Any: a JSON value
    """Return the JSON value, or None where there is none that can be stored."""
    try:
        document = json.loads(text)
        if "\\u" in text:
            # JSON can spell half of a surrogate pair, which no database can store as text.
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return document


def string_list(value: AttributeValue) -> AttributeValue:
    """Return a string, a JSON list in a string or a JSON list as the array that it stands for."""
    if isinstance(value, str):
        loaded = load_json(value) if value.startswith("[") else None
        return tuple(loaded) if isinstance(loaded, list) else (value,)
    return _as_attribute(value)


def _as_attribute(value: Any) -> AttributeValue:  # Any: a JSON value
    # JSON has integers that OTLP has not: the contract flags what is not finite.
    if isinstance(value, int) and abs(value) > _MAX_INT:
        return math.inf
    return tuple(value) if isinstance(value, list) else value


def _exception_type(span: Span) -> AttributeValue:
    """Return the type of the exception that was recorded on the span, if one was."""
    for event in span.events:
        if event.name == "exception":
            return event.attributes.get("exception.type")
    return None


def _as_sent(decoded: Decoded, origins: Mapping[str, str], unreadable: tuple[str, ...]) -> Decoded:
    def sent(flag: str) -> str:
        group, found, name = flag.rpartition("type:")
        return f"{group}type:{origins.get(name, name)}" if found else flag

    # Several fields may come out of one attribute.
    problems = dict.fromkeys((*map(sent, decoded.problems), *unreadable))
    quality = dict.fromkeys((*map(sent, decoded.fields.get("quality", ())), *unreadable))
    fields = decoded.fields | {"quality": tuple(quality)}
    return Decoded(fields, decoded.content, tuple(problems))
