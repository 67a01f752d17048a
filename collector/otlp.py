"""OTLP/HTTP trace bodies to spans.

Both encodings end in the same protobuf message and are read by the same code, so that they cannot
store different rows. The JSON mapping of OTLP differs from protobuf's own in one thing: trace and
span ids are hexadecimal, not base64; they are rewritten before the message is built.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from collector.contract import AttributeValue, Span, SpanStatus
from collector.errors import OtlpError

MAX_DEPTH = 32
"""Deepest nesting of lists in an attribute value."""

_MAX_UNIX_NS = 2**63 - 1
_NO_SPAN = bytes(8)
_SCALARS = frozenset({"string_value", "int_value", "double_value", "bool_value", "bytes_value"})
_KINDS = {2: "server", 3: "client", 4: "producer", 5: "consumer"}
_FIELD = re.compile(r"Failed to parse (\w+) field: ")
_FIELDS = re.compile(f"(?:{_FIELD.pattern})*")
_STATUSES = {1: SpanStatus.OK, 2: SpanStatus.ERROR}


class Encoding(StrEnum):
    """How an OTLP body is written; the value is its media type."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


class Received(NamedTuple):
    """What one body held."""

    spans: tuple[Span, ...]
    rejected: tuple[str, ...]
    """For each span that cannot be stored, the reason."""


class _RejectedError(Exception):
    """A span cannot be stored; the message says why."""


def decode_traces(body: bytes, encoding: Encoding) -> Received:
    """Return the spans of an export request.

    Raises `OtlpError` where the body cannot be decoded at all. A span that was decoded but cannot
    be stored (an id of the wrong length or all zeros, no start or end, a time beyond int64) is
    named in `rejected` and does not keep the others out.
    """
    message = _from_json(body) if encoding is Encoding.JSON else _from_protobuf(body)
    spans: list[Span] = []
    rejected: list[str] = []
    for resource_spans in message.resource_spans:
        resource = _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope_name = scope_spans.scope.name or None
            for span in scope_spans.spans:
                try:
                    spans.append(_span(span, scope_name, resource))
                except _RejectedError as exc:
                    rejected.append(str(exc))
    return Received(tuple(spans), tuple(rejected))


def _from_protobuf(body: bytes) -> ExportTraceServiceRequest:
    message = ExportTraceServiceRequest()
    try:
        message.ParseFromString(body)
    except DecodeError as exc:
        raise OtlpError(
            f"the body ({len(body)} bytes) is no ExportTraceServiceRequest in protobuf: "
            "truncated, garbled, not UTF-8, or nested too deeply"
        ) from exc
    return message


def _from_json(body: bytes) -> ExportTraceServiceRequest:
    message = ExportTraceServiceRequest()
    try:
        document = json.loads(body)
        if not isinstance(document, dict):
            raise OtlpError(f"wanted a JSON object, got {type(document).__name__}")
        _rewrite_ids(document)
        json_format.ParseDict(document, message, ignore_unknown_fields=True)
    except RecursionError as exc:
        raise OtlpError("the JSON body is nested too deeply") from exc
    except (ValueError, TypeError, AttributeError, json_format.ParseError) as exc:
        raise OtlpError(f"the body is no OTLP JSON: {_reason(exc)}") from exc
    return message


def _reason(exc: Exception) -> str:
    """Say where the fault is, without the value that was found: it may be a prompt."""
    if isinstance(exc, json.JSONDecodeError | UnicodeDecodeError):
        return str(exc)
    path = _FIELDS.match(str(exc))
    fields = _FIELD.findall(path.group())[-3:] if path else []
    if "Message too deep" in str(exc):
        return "it is nested too deeply"
    return f"{'.'.join(fields) or 'a field'}: a value of the wrong type or form"


def _rewrite_ids(document: dict[str, Any]) -> None:  # Any: JSON, as sent
    for resource_spans in _objects(document, "resourceSpans"):
        for scope_spans in _objects(resource_spans, "scopeSpans"):
            for span in _objects(scope_spans, "spans"):
                _rewrite_hex(span, ("traceId", "spanId", "parentSpanId"))
                for link in _objects(span, "links"):
                    _rewrite_hex(link, ("traceId", "spanId"))


def _objects(parent: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """Yield the objects listed under the key; anything else is left for the parser to refuse."""
    items = parent.get(key)
    if isinstance(items, list):
        yield from (item for item in items if isinstance(item, dict))


def _rewrite_hex(holder: dict[str, Any], keys: Iterable[str]) -> None:
    for key in keys:
        text = holder.get(key)
        if not isinstance(text, str):
            continue
        try:
            raw = binascii.unhexlify(text)
        except ValueError:
            raw = b"?"  # no id has this length: the span is rejected, the others are not
        holder[key] = base64.b64encode(raw).decode()


def _span(span: trace_pb2.Span, scope_name: str | None, resource: dict[str, Any]) -> Span:
    status = span.status
    return Span(
        trace_id=_id("trace_id", span.trace_id, 16),
        span_id=_id("span_id", span.span_id, 8),
        parent_span_id=_parent_id(span.parent_span_id),
        name=span.name,
        kind=_KINDS.get(span.kind, "internal"),
        start_unix_ns=_time("start_time_unix_nano", span.start_time_unix_nano),
        end_unix_ns=_time("end_time_unix_nano", span.end_time_unix_nano),
        status=_STATUSES.get(status.code, SpanStatus.UNSET),
        status_message=status.message or None,
        scope_name=scope_name,
        attributes=_attributes(span.attributes),
        resource=resource,
    )


def _id(name: str, value: bytes, length: int) -> str:
    if len(value) != length or not any(value):
        raise _RejectedError(
            f"{name}: wanted {length} bytes ({2 * length} hexadecimal digits), not all zero"
        )
    return value.hex()


def _parent_id(value: bytes) -> str | None:
    return None if value in (b"", _NO_SPAN) else _id("parent_span_id", value, 8)


def _time(name: str, value: int) -> int:
    if not 0 < value <= _MAX_UNIX_NS:
        raise _RejectedError(f"{name}: wanted Unix nanoseconds from 1 to 2^63 - 1")
    return value


def _attributes(pairs: Iterable[KeyValue], depth: int = 0) -> dict[str, AttributeValue]:
    return {pair.key: _value(pair.value, depth) for pair in pairs}


def _value(value: AnyValue, depth: int) -> AttributeValue:
    kind = value.WhichOneof("value")
    if kind in _SCALARS:
        return getattr(value, kind)  # type: ignore[no-any-return]  # of the kind's type
    if depth >= MAX_DEPTH:
        raise OtlpError(f"an attribute value is nested more than {MAX_DEPTH} deep")
    if kind == "array_value":
        return tuple(_value(item, depth + 1) for item in value.array_value.values)
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values, depth + 1)
    return None
