"""OTLP attribute values to Python's, and back."""

from collections.abc import Iterable, Mapping

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from collector.contract import AttributeValue
from collector.errors import OtlpError

MAX_DEPTH = 32
"""Deepest nesting of lists in an attribute value."""

_SCALARS = frozenset({"string_value", "int_value", "double_value", "bool_value", "bytes_value"})


def read_attributes(pairs: Iterable[KeyValue], depth: int = 0) -> dict[str, AttributeValue]:
    """Return the attributes; the last value of a duplicate key wins.

    Raises `OtlpError` for a value nested more than `MAX_DEPTH` deep.
    """
    return {pair.key: read_value(pair.value, depth) for pair in pairs}


def read_attribute(raw: bytes) -> tuple[str, AttributeValue]:
    """Return the key and value of a `KeyValue` message.

    Raises `OtlpError` if it is malformed or nested too deeply.
    """
    try:
        pair = KeyValue.FromString(raw)
    except DecodeError as exc:
        raise OtlpError("an attribute is garbled: not UTF-8, or nested too deeply") from exc
    return (pair.key, read_value(pair.value))


def read_value(value: AnyValue, depth: int = 0) -> AttributeValue:
    """Return the value; raises `OtlpError` for one nested more than `MAX_DEPTH` deep."""
    kind = value.WhichOneof("value")
    if kind in _SCALARS:
        return getattr(value, kind)  # type: ignore[no-any-return]  # of the kind's type
    if depth >= MAX_DEPTH:
        raise OtlpError(f"an attribute value is nested more than {MAX_DEPTH} deep")
    if kind == "array_value":
        return tuple([read_value(item, depth + 1) for item in value.array_value.values])
    if kind == "kvlist_value":
        return read_attributes(value.kvlist_value.values, depth + 1)
    return None


def write_attribute(key: str, value: AttributeValue) -> KeyValue:
    """Return the attribute as an OTLP `KeyValue`."""
    pair = KeyValue(key=key)
    _fill(pair.value, value)
    return pair


def _fill(out: AnyValue, value: AttributeValue) -> None:
    if isinstance(value, bool):
        out.bool_value = value
    elif isinstance(value, int):
        out.int_value = value
    elif isinstance(value, float):
        out.double_value = value
    elif isinstance(value, str):
        out.string_value = value
    elif isinstance(value, bytes):
        out.bytes_value = value
    elif isinstance(value, tuple):
        out.array_value.SetInParent()
        for item in value:
            _fill(out.array_value.values.add(), item)
    elif isinstance(value, Mapping):
        out.kvlist_value.SetInParent()
        for key, item in value.items():
            out.kvlist_value.values.append(write_attribute(key, item))
