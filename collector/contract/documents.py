"""Records to plain JSON documents and back.

One generic codec handles every record of the contract, so that API bodies, files and records stay
consistent.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from collector.contract.records import SPAN_ONLY

Document = dict[str, Any]  # Any: a JSON value
R = TypeVar("R")
_SCALARS = frozenset({str, int, float, bool})


class DocumentError(ValueError):
    """A document does not match its record type; the message names the key and the kind wanted."""


def to_document(record: Any) -> Document:  # Any: any dataclass of the contract
    """Return the record as JSON-ready values; tuples become lists, enums their values."""
    return {
        name: to_plain(getattr(record, name))
        for name in _names(typing.cast("typing.Hashable", type(record)))
    }


def from_document(kind: type[R], document: object, *, at: str = "") -> R:
    """Return the record that `document` describes.

    Raises `DocumentError` on an unknown key, a missing key or a value of the wrong type; `at` is
    the path of the document inside a larger one.
    """
    if not isinstance(document, Mapping):
        raise DocumentError(f"{at or kind.__name__}: wanted an object, got {_seen(document)}")
    hints = _hints(typing.cast("typing.Hashable", kind))
    for key in document:
        if key not in hints:
            raise DocumentError(f"{_join(at, key)}: unknown key in {kind.__name__}")
    plain = _plain_types(typing.cast("typing.Hashable", kind))
    values = {
        key: value
        if type(value) in plain[key] and (type(value) is not float or math.isfinite(value))
        else _restore(hints[key], value, _join(at, key))
        for key, value in document.items()
    }
    for name in _required(typing.cast("typing.Hashable", kind)):
        if name not in values:
            raise DocumentError(f"{_join(at, name)}: missing key of {kind.__name__}")
    try:
        return kind(**values)
    except ValueError as exc:
        raise DocumentError(f"{at or kind.__name__}: {exc}") from exc


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.metadata != SPAN_ONLY)


def to_plain(value: Any) -> Any:  # Any: JSON values and records
    """Return a value as JSON-ready values, with the records in it as documents."""
    if value is None or type(value) in _SCALARS:  # the fast path for most values
        return value
    if isinstance(value, StrEnum):
        return value.value
    if dataclasses.is_dataclass(value):
        return to_document(value)
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return value


@cache
def _required(kind: Any) -> tuple[str, ...]:
    return tuple(
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


@cache
def _plain_types(kind: Any) -> dict[str, frozenset[type]]:
    """Return, for each field, the types of values that are accepted without further checks."""
    found = {}
    for name, hint in _hints(kind).items():
        optional = typing.get_origin(hint) in (typing.Union, types.UnionType)
        options = typing.get_args(hint) if optional else (hint,)
        taken = frozenset(options) - {type(None)}
        scalar = len(taken) == 1 and taken <= {str, int, float, bool}
        found[name] = frozenset(options) if scalar else frozenset()
    return found


def _restore(hint: Any, value: object, at: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _restore_union(typing.get_args(hint), value, at)
    if origin is tuple:
        return _restore_tuple(typing.get_args(hint)[0], value, at)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise DocumentError(f"{at}: wanted an object, got {_seen(value)}")
        item_hint = typing.get_args(hint)[1]
        return {str(k): _restore(item_hint, v, _join(at, str(k))) for k, v in value.items()}
    if dataclasses.is_dataclass(hint):
        return from_document(typing.cast("type[Any]", hint), value, at=at)
    return _restore_scalar(hint, value, at)


def _restore_union(options: tuple[Any, ...], value: object, at: str) -> Any:
    if value is None and type(None) in options:
        return None
    concrete = [option for option in options if option is not type(None)]
    if len(concrete) == 1:
        return _restore(concrete[0], value, at)
    raise DocumentError(f"{at}: a span's attributes are no part of a document")


def _restore_tuple(item_hint: Any, value: object, at: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise DocumentError(f"{at}: wanted a list, got {_seen(value)}")
    if item_hint in (int, str) and set(map(type, value)) <= {item_hint}:
        return tuple(value)  # the fast path for most lists
    return tuple(_restore(item_hint, item, f"{at}[{i}]") for i, item in enumerate(value))


def _restore_scalar(hint: Any, value: object, at: str) -> Any:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        allowed = [member.value for member in hint]
        if value not in allowed:
            raise DocumentError(f"{at}: wanted one of {', '.join(allowed)}, got {_seen(value)}")
        return hint(value)
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # JSON integers may exceed the range of floats
            number = math.inf
        if not math.isfinite(number):
            raise DocumentError(f"{at}: wanted a finite number, got {_seen(value)}")
        return number
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if hint in (str, bool) and isinstance(value, hint):
        return value
    raise DocumentError(f"{at}: wanted {hint.__name__}, got {_seen(value)}")


def _join(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def _seen(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
