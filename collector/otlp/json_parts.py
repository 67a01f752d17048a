"""Splits a JSON body at its values' boundaries, as `body_parts` splits protobuf."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from collector.errors import OtlpError
from collector.otlp.body import check_name
from collector.otlp.body_parts import BodyEncoding, ResourceItems, ScopeItems
from collector.otlp.json_extent import extent
from collector.otlp.weight import Root

_Item = TypeVar("_Item")
_SPACE: Final = re.compile(rb"[ \t\n\r]*")
_SCALAR: Final = re.compile(rb"[-+.\w]+")
_NAME: Final = re.compile(rb'("(?:[^"\\]|\\.)*+")[ \t\n\r]*:[ \t\n\r]*', re.DOTALL)


class _Names(NamedTuple):
    """The lists' names."""

    resources: str
    scopes: str
    items: str


def _resources(names: _Names, body: bytes) -> list[ResourceItems]:
    _, found, end = _object(body, _skip(body, 0), names.resources, partial(_resource, names))
    if end != len(body):
        raise _unreadable(end)
    return found


def _resource(names: _Names, body: bytes, at: int) -> tuple[ResourceItems, int]:
    shared, scopes, end = _object(body, at, names.scopes, partial(_scope, names))
    return ResourceItems(shared, scopes), end


def _scope(names: _Names, body: bytes, at: int) -> tuple[ScopeItems, int]:
    shared, items, end = _object(body, at, names.items, _item)
    return ScopeItems(shared, items), end


def _item(body: bytes, at: int) -> tuple[bytes, int]:
    end = _after_value(body, at)
    return body[at:end], end


def _object(
    body: bytes, at: int, key: str, read: Callable[[bytes, int], tuple[_Item, int]]
) -> tuple[bytes, list[_Item], int]:
    """Return an object without the list at `key`, the list's items, and the offset after it.

    If a name stands there twice, the last one counts, as in Python's parser.
    """
    rest: dict[str, bytes] = {}
    items: list[_Item] = []
    at = _after(body, at, b"{")
    while body[at : at + 1] != b"}":
        if rest:
            at = _after(body, at, b",")
        start, (name, at) = at, _name(body, at)
        check_name(name, key)
        if name == key:
            items, at = _list(body, at, read)
            rest[name] = b""
        else:
            end = _after_value(body, at)
            rest[name], at = body[start:end], _skip(body, end)
    shared = b",".join(filter(None, rest.values()))
    return b"{%s}" % shared, items, _skip(body, at + 1)


def _list(
    body: bytes, at: int, read: Callable[[bytes, int], tuple[_Item, int]]
) -> tuple[list[_Item], int]:
    items: list[_Item] = []
    at = _after(body, at, b"[")
    while body[at : at + 1] != b"]":
        if items:
            at = _after(body, at, b",")
        item, end = read(body, at)
        items.append(item)
        at = _skip(body, end)
    return items, _skip(body, at + 1)


def _name(body: bytes, at: int) -> tuple[str, int]:
    """Return a member's name, and the offset of its value."""
    found = _NAME.match(body, at)
    if found is None:
        raise _unreadable(at)
    try:
        return json.loads(found[1]), found.end()
    except ValueError as exc:
        raise _unreadable(at) from exc


def _after_value(body: bytes, at: int) -> int:
    end = extent(body, at)[0]
    if end < 0:
        scalar = _SCALAR.match(body, at)
        if scalar is None:
            raise _unreadable(at)
        return scalar.end()
    return end


def _after(body: bytes, at: int, sign: bytes) -> int:
    if body[at : at + 1] != sign:
        raise _unreadable(at)
    return _skip(body, at + 1)


def _skip(body: bytes, at: int) -> int:
    return _SPACE.match(body, at).end()  # type: ignore[union-attr]  # it matches nothing, too


def _unreadable(at: int) -> OtlpError:
    return OtlpError(f"the body is no OTLP JSON: byte {at} is not what OTLP has there")


def _with(key: str, shared: bytes, items: Sequence[bytes]) -> bytes:
    """Return an object with one more member."""
    comma = b"" if shared == b"{}" else b","
    return b'%s%s"%s":[%s]}' % (shared[:-1], comma, key.encode(), b",".join(items))


def _form(names: _Names) -> BodyEncoding:
    return BodyEncoding(
        resources=partial(_resources, names),
        of_items=partial(_with, names.items),
        of_scopes=partial(_with, names.scopes),
        of_resources=partial(_with, names.resources, b"{}"),
        nothing=b"{}",
    )


JSON: Final[Mapping[Root, BodyEncoding]] = {
    Root.TRACES: _form(_Names("resourceSpans", "scopeSpans", "spans")),
    Root.LOGS: _form(_Names("resourceLogs", "scopeLogs", "logRecords")),
    Root.METRICS: _form(_Names("resourceMetrics", "scopeMetrics", "metrics")),
}
