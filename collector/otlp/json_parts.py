"""Splits a JSON trace body at its values' boundaries, as `body_parts` splits protobuf."""

import json
import re
from collections.abc import Callable, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]  # the C one, if there is one
from typing import Final, TypeVar

from collector.errors import OtlpError
from collector.otlp.body_parts import BodyEncoding, ResourceSpans, ScopeSpans

_Item = TypeVar("_Item")
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_OTHERWISE: Final = frozenset({"resource_spans", "scope_spans"})
"""Names that protobuf's mapping allows and OTLP's does not."""
_value_at: Final = json.JSONDecoder().raw_decode


class _UnusualError(Exception):
    """The text is not JSON, or not of the form that exporters write."""


def _resources(body: bytes) -> list[ResourceSpans]:
    try:
        text = body.decode()
        _, found, end = _object(text, _skip(text, 0), "resourceSpans", _resource)
    except (_UnusualError, ValueError, IndexError, RecursionError) as exc:
        raise OtlpError("the body is no OTLP JSON") from exc
    return found if end == len(text) else []


def _resource(text: str, at: int) -> tuple[ResourceSpans, int]:
    shared, scopes, end = _object(text, at, "scopeSpans", _scope)
    return ResourceSpans(shared, scopes), end


def _scope(text: str, at: int) -> tuple[ScopeSpans, int]:
    shared, spans, end = _object(text, at, "spans", _span)
    return ScopeSpans(shared, spans), end


def _span(text: str, at: int) -> tuple[bytes, int]:
    end = _value_at(text, at)[1]
    return text[at:end].encode(), end


def _object(
    text: str, at: int, key: str, read: Callable[[str, int], tuple[_Item, int]]
) -> tuple[bytes, list[_Item], int]:
    """Return an object without the list at `key`, the list's items, and the offset after it."""
    rest: dict[str, str] = {}
    items: list[_Item] = []
    at = _after(text, at, "{")
    while text[at] != "}":
        if rest:
            at = _after(text, at, ",")
        start = at
        name, at = scanstring(text, _after(text, at, '"', skips=False))
        if name in rest or name in _OTHERWISE:
            raise _UnusualError
        at = _after(text, _skip(text, at), ":")
        if name == key:
            items, at = _list(text, at, read)
            rest[name] = ""
        else:
            end = _value_at(text, at)[1]
            rest[name], at = text[start:end], _skip(text, end)
    shared = ",".join(filter(None, rest.values()))
    return f"{{{shared}}}".encode(), items, _skip(text, at + 1)


def _list(
    text: str, at: int, read: Callable[[str, int], tuple[_Item, int]]
) -> tuple[list[_Item], int]:
    items: list[_Item] = []
    at = _after(text, at, "[")
    while text[at] != "]":
        if items:
            at = _after(text, at, ",")
        item, end = read(text, at)
        items.append(item)
        at = _skip(text, end)
    return items, _skip(text, at + 1)


def _after(text: str, at: int, sign: str, *, skips: bool = True) -> int:
    if text[at] != sign:
        raise _UnusualError
    return _skip(text, at + 1) if skips else at + 1


def _skip(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too


def _with(shared: bytes, key: bytes, items: Sequence[bytes]) -> bytes:
    """Return an object with one more member."""
    comma = b"" if shared == b"{}" else b","
    return b'%s%s"%s":[%s]}' % (shared[:-1], comma, key, b",".join(items))


JSON: Final = BodyEncoding(
    resources=_resources,
    of_spans=lambda shared, spans: _with(shared, b"spans", spans),
    of_scopes=lambda shared, scopes: _with(shared, b"scopeSpans", scopes),
    of_resources=lambda resources: _with(b"{}", b"resourceSpans", resources),
    nothing=b"{}",
)
