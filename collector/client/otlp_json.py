"""Generations as an OTLP/JSON body."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from collector.contract import AttributeValue, Generation, encode


def traces(
    generations: Iterable[Generation], resource: Mapping[str, AttributeValue] | None = None
) -> bytes:
    """Return the body of a request to /v1/traces, of type application/json."""
    spans = [_span(generation) for generation in generations]
    attributes = _attributes(resource or {})
    one = {"resource": {"attributes": attributes}, "scopeSpans": [{"spans": spans}]}
    return json.dumps({"resourceSpans": [one]}).encode()


def _span(generation: Generation) -> dict[str, Any]:  # Any: JSON
    span = encode(generation)
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": 3,
        "startTimeUnixNano": str(span.start_unix_ns),
        "endTimeUnixNano": str(span.end_unix_ns),
        "attributes": _attributes(span.attributes),
        "status": {"code": 2 if generation.error_type else 0},
    }


def _attributes(given: Mapping[str, AttributeValue]) -> list[dict[str, Any]]:  # Any: JSON
    return [{"key": key, "value": _value(value)} for key, value in given.items()]


def _value(value: Any) -> dict[str, Any]:  # Any: JSON
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, tuple):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": value}
