"""Spans as JSON, without loss, for the trace API.

Plain JSON has no bytes, no NaN and no infinity. Every JSON object among attribute values is
therefore a tag with one key: `{"bytes_hex": "00ff"}`, `{"double": "NaN"}` (or `Infinity`,
`-Infinity`), `{"kvlist": {…}}`. Tagging key-value lists too keeps a list that happens to have a key
`bytes_hex` from being read as bytes.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from collector.contract.documents import Document, from_document, to_document
from collector.contract.records import AttributeValue, Span, SpanEvent, SpanLink

R = TypeVar("R")

_PLAIN = frozenset({str, int, bool, type(None)})
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def attributes_to_json(attributes: Mapping[str, AttributeValue]) -> Document:
    """Return the attributes as strict JSON values."""
    return {
        name: value if type(value) in _PLAIN else _tagged(value)
        for name, value in attributes.items()
    }


def attributes_from_json(document: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Return the attributes encoded by `attributes_to_json`.

    Raises `ValueError` or `KeyError` on any other JSON.
    """
    return {name: _untagged(value) for name, value in document.items()}


def span_to_document(span: Span) -> Document:
    """Return the span as a JSON document of the trace API."""
    return _without_attributes(span, resource={}, events=(), links=()) | {
        "attributes": attributes_to_json(span.attributes),
        "resource": attributes_to_json(span.resource),
        "events": [_part_to_document(event) for event in span.events],
        "links": [_part_to_document(link) for link in span.links],
    }


def span_from_document(document: Document) -> Span:
    """Return the span encoded by `span_to_document`.

    Raises `DocumentError`, `ValueError` or `KeyError` on anything else.
    """
    return _from_document(
        Span,
        document,
        resource=attributes_from_json(document["resource"]),
        events=tuple(_from_document(SpanEvent, event) for event in document["events"]),
        links=tuple(_from_document(SpanLink, link) for link in document["links"]),
    )


def _part_to_document(part: SpanEvent | SpanLink) -> Document:
    return _without_attributes(part) | {"attributes": attributes_to_json(part.attributes)}


def _without_attributes(record: Any, **emptied: Any) -> Document:  # Any: Span or a part of it
    return to_document(replace(record, attributes={}, **emptied))


def _from_document(kind: type[R], document: Document, **parts: Any) -> R:  # Any: fields of the kind
    """Return the record; the contract's codec cannot decode its attributes and `parts`."""
    plain = {name: value for name, value in document.items() if name not in parts}
    bare = from_document(kind, plain | {"attributes": {}})
    attributes = attributes_from_json(document["attributes"])
    return replace(bare, attributes=attributes, **parts)  # type: ignore[type-var]  # a dataclass


def _tagged(value: AttributeValue) -> Any:  # Any: a JSON value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return {"double": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, bytes):
        return {"bytes_hex": value.hex()}
    if isinstance(value, tuple):
        return [_tagged(item) for item in value]
    if isinstance(value, Mapping):
        return {"kvlist": attributes_to_json(value)}
    return value


def _untagged(value: Any) -> AttributeValue:  # Any: a JSON value
    if isinstance(value, list):
        return tuple(_untagged(item) for item in value)
    if not isinstance(value, dict):
        return value  # type: ignore[no-any-return]  # str, int, float, bool or None
    ((tag, inner),) = value.items()
    if tag == "double":
        return _NON_FINITE[inner]
    if tag == "bytes_hex":
        return bytes.fromhex(inner)
    if tag == "kvlist":
        return attributes_from_json(inner)
    raise ValueError(f"unknown tag {tag!r}; wanted double, bytes_hex or kvlist")
