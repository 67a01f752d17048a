"""Estimate of the memory that decoding a body needs, computed before it is decoded.

An empty span takes a few bytes in a body but hundreds once decoded: ten megabytes of such spans,
one kilobyte compressed, would fill the memory. So the messages in a body are counted first.
"""

from enum import IntEnum, auto
from typing import Final

from collector.errors import BodyTooLargeError
from collector.otlp.body import Encoding
from collector.otlp.json_extent import extent
from collector.otlp.wire_fields import value_at, varint

try:
    from collector.otlp._span_reader import weigh as _weigh
except ImportError:  # there was no compiler when this was installed

    def _weigh(body: bytes, schema: bytes, weights: bytes, root: int, most: int, /) -> int:
        return weigh_slowly(body, schema, weights, root, most)


MOST_UNITS: Final = 2**22
"""Limit of a body: a span, log record or point weighs 16, an event or link 8, an attribute 2."""
BYTES_PER_UNIT: Final = 16
"""Room that admission reserves per unit; at least the body's length is reserved."""
MOST_IN_ITEM: Final = 2**16
"""Limit of a span, log record or metric: attributes, events, links, points and values.

In JSON: objects and lists, and eight times as many commas.
"""
_WEIGHED_FROM_BYTES: Final = 512 * 1024
"""Smaller bodies cannot contain too much."""
_MOST_JSON_OBJECTS: Final = 2**20
_COMMAS_PER_OBJECT: Final = 8
_MOST_JSON_COMMAS: Final = _COMMAS_PER_OBJECT * _MOST_JSON_OBJECTS
_FIELDS: Final = 16
_DEEPEST: Final = 100


class Root(IntEnum):
    """The root messages of OTLP bodies."""

    TRACES = 1
    LOGS = 2
    METRICS = 3

    @property
    def resource(self) -> int:
        """The kind of messages with a resource and its scopes."""
        return self + _Type.RESOURCE_SPANS - Root.TRACES

    @property
    def scope(self) -> int:
        """The kind of messages with a scope and its items."""
        return self + _Type.SCOPE_SPANS - Root.TRACES


class _Type(IntEnum):
    RESOURCE_SPANS = 4  # those of resources and of scopes follow each other as those of `Root` do
    RESOURCE_LOGS = auto()
    RESOURCE_METRICS = auto()
    SCOPE_SPANS = auto()
    SCOPE_LOGS = auto()
    SCOPE_METRICS = auto()
    RESOURCE = auto()
    SCOPE = auto()
    SPAN = auto()
    EVENT = auto()
    LINK = auto()
    LOG = auto()
    METRIC = auto()
    DATA = auto()
    POINT = auto()
    KEY_VALUE = auto()
    ANY = auto()
    ARRAY = auto()
    KEY_VALUES = auto()


_T = _Type
_CHILDREN: Final[dict[int, dict[int, int]]] = {
    Root.TRACES: {1: _T.RESOURCE_SPANS},
    Root.LOGS: {1: _T.RESOURCE_LOGS},
    Root.METRICS: {1: _T.RESOURCE_METRICS},
    _T.RESOURCE_SPANS: {1: _T.RESOURCE, 2: _T.SCOPE_SPANS},
    _T.RESOURCE_LOGS: {1: _T.RESOURCE, 2: _T.SCOPE_LOGS},
    _T.RESOURCE_METRICS: {1: _T.RESOURCE, 2: _T.SCOPE_METRICS},
    _T.SCOPE_SPANS: {1: _T.SCOPE, 2: _T.SPAN},
    _T.SCOPE_LOGS: {1: _T.SCOPE, 2: _T.LOG},
    _T.SCOPE_METRICS: {1: _T.SCOPE, 2: _T.METRIC},
    _T.RESOURCE: {1: _T.KEY_VALUE},
    _T.SCOPE: {3: _T.KEY_VALUE},
    _T.SPAN: {9: _T.KEY_VALUE, 11: _T.EVENT, 13: _T.LINK},
    _T.EVENT: {3: _T.KEY_VALUE},
    _T.LINK: {4: _T.KEY_VALUE},
    _T.LOG: {5: _T.ANY, 6: _T.KEY_VALUE},
    _T.METRIC: {5: _T.DATA, 7: _T.DATA, 9: _T.DATA, 10: _T.DATA, 11: _T.DATA, 12: _T.KEY_VALUE},
    _T.DATA: {1: _T.POINT},
    # For all kinds of points: attributes, exemplars, and a summary's quantiles.
    _T.POINT: {
        1: _T.KEY_VALUE,
        5: _T.EVENT,
        6: _T.EVENT,
        7: _T.KEY_VALUE,
        8: _T.EVENT,
        9: _T.EVENT,
        11: _T.EVENT,
    },
    _T.KEY_VALUE: {2: _T.ANY},
    _T.ANY: {5: _T.ARRAY, 6: _T.KEY_VALUES},
    _T.ARRAY: {1: _T.ANY},
    _T.KEY_VALUES: {1: _T.KEY_VALUE},
}
_ITEMS: Final = frozenset({_T.SPAN, _T.LOG, _T.METRIC})
_HEAVY: Final = 16
_LIGHT: Final = {_T.EVENT: 8, _T.LINK: 8, _T.KEY_VALUE: 1, _T.ANY: 1}
_TYPES: Final = max(_Type) + 1
_SCHEMA: Final = bytes(
    _CHILDREN.get(kind, {}).get(field, 0) for kind in range(_TYPES) for field in range(_FIELDS)
)
_SCHEMA_TO_ITEMS: Final = bytes(
    0 if kind in _ITEMS else child
    for kind in range(_TYPES)
    for child in _SCHEMA[kind * _FIELDS : (kind + 1) * _FIELDS]
)
_ONES: Final = bytes([1] * _TYPES)
_WEIGHTS: Final = bytes(_LIGHT.get(kind, _HEAVY) for kind in range(_TYPES))  # type: ignore[call-overload]


def units(body: bytes, encoding: Encoding, root: Root) -> int:
    """Return the weight of a body in units; 0 for a small body.

    Raises `BodyTooLargeError` for more than `MOST_UNITS`, and in JSON for more than a million
    objects and lists, or eight million commas.
    """
    if len(body) <= _WEIGHED_FROM_BYTES:
        return 0
    if encoding is Encoding.JSON:
        objects = body.count(b"{") + body.count(b"[")
        if objects > _MOST_JSON_OBJECTS or body.count(b",") > _MOST_JSON_COMMAS:
            raise _too_much(f"more than {_MOST_JSON_OBJECTS} objects and lists")
        return objects
    found = _weigh(body, _SCHEMA, _WEIGHTS, root, MOST_UNITS)
    if found > MOST_UNITS:
        raise _too_much("more spans, records, points and attributes than are read at once")
    return found


def units_if_heavy(fields: bytes, encoding: Encoding, kind: int) -> int:
    """Return the weight of fields of a message of this kind if they hold too much, else 0."""
    if len(fields) <= 2 * MOST_IN_ITEM:  # a message takes two bytes at least
        return 0
    if encoding is Encoding.JSON:
        _, objects, commas = extent(fields, 0)
        is_heavy = objects > MOST_IN_ITEM or commas > _COMMAS_PER_OBJECT * MOST_IN_ITEM
        return objects if is_heavy else 0
    most = MOST_IN_ITEM + 1  # with the item itself
    if _weigh(fields, _SCHEMA, _ONES, kind, most) <= most:
        return 0
    return _weigh(fields, _SCHEMA, _WEIGHTS, kind, MOST_UNITS)


def units_if_light(body: bytes, root: Root, most_items: int) -> int | None:
    """Return the weight of a protobuf body if its items are few and hold little together.

    None for more than `most_items` resources, scopes and items, for more than one item may hold in
    all, and for a malformed body.
    """
    items = _weigh(body, _SCHEMA_TO_ITEMS, _ONES, root, most_items)
    if items > most_items:
        return None
    # Each of these weighs 16 and counts as one message; no message weighs less than one.
    most = MOST_IN_ITEM + (_HEAVY - 1) * items
    found = _weigh(body, _SCHEMA, _WEIGHTS, root, most)
    return found if found <= most else None


def _too_much(what: str) -> BodyTooLargeError:
    return BodyTooLargeError(f"the body holds {what}; send smaller batches")


def weigh_slowly(body: bytes, schema: bytes, weights: bytes, root: int, most: int, /) -> int:
    """Weigh a protobuf body in Python, with the same result as the compiled function."""
    left = most
    waiting = [(0, len(body), root, 0)]
    while waiting and left >= 0:
        at, end, kind, depth = waiting.pop()
        while at < end and left >= 0:
            tag, at = varint(body, at, end)
            number, wire = tag >> 3, tag & 7
            size, at = value_at(body, at, end, wire)
            child = schema[kind * _FIELDS + number] if number < _FIELDS else 0
            if size < 0 or at + size > end or depth > _DEEPEST or not 8 <= tag < 2**32:
                return most + 1
            if child and wire == 2:
                left -= weights[child]
                waiting.append((at, at + size, child, depth + 1))
            at += size
    return most - left
