"""Splits a large body into parts, each a complete body, so that bodies are interleaved.

An item is a span, a log record or a metric. Each part repeats the resource and scope of its items.
Nothing is decoded here: a body is cut at the boundaries of its fields or values.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from collector.errors import OtlpError
from collector.otlp.wire_fields import value_at, varint

MOST_ITEMS: Final = 1024
"""Most spans, log records or metrics in a part."""
_ENOUGH_BYTES: Final = 512 * 1024
_SHARED_TIMES: Final = 4
"""A part is at least this many times as long as its resource and scope, which repeat in each."""


class _GarbledError(Exception):
    """The bytes are not protobuf fields, or have wire types that OTLP does not use."""


class ScopeItems(NamedTuple):
    """Items that share a scope, as sent, including their tags: OTLP's `ScopeSpans`, for example."""

    shared: bytes
    """The scope's message without its items."""
    items: list[bytes]


class ResourceItems(NamedTuple):
    """Scopes that share a resource: OTLP's `ResourceSpans`, for example."""

    shared: bytes
    """The resource's message without its scopes, as sent."""
    scopes: list[ScopeItems]


class BodyEncoding(NamedTuple):
    """Functions that split and assemble bodies of one encoding."""

    resources: Callable[[bytes], list[ResourceItems]]
    """Splits a body into resources; raises `OtlpError` if its structure is malformed."""
    of_items: Callable[[bytes, Sequence[bytes]], bytes]
    """Assembles a scope from its shared part and its items."""
    of_scopes: Callable[[bytes, Sequence[bytes]], bytes]
    """Assembles a resource from its shared part and its scopes."""
    of_resources: Callable[[Sequence[bytes]], bytes]
    """Assembles a body from resources."""
    nothing: bytes
    """An empty resource or scope."""


class _Field(NamedTuple):
    number: int
    start: int
    """Offset of its tag."""
    inside: int
    """Offset of its value."""
    end: int


@dataclass
class _Part:
    """A part under construction."""

    form: BodyEncoding
    bodies: list[bytes] = field(default_factory=list)
    """Completed resources."""
    scopes: list[bytes] = field(default_factory=list)
    """Scopes of the current resource."""
    items: int = 0
    size_bytes: int = 0

    def is_full(self, shared_bytes: int) -> bool:
        """Return whether the part is large enough, also relative to the shared bytes."""
        is_enough = self.items >= MOST_ITEMS or self.size_bytes >= _ENOUGH_BYTES
        return is_enough and self.size_bytes >= _SHARED_TIMES * shared_bytes

    def end_resource(self, shared: bytes) -> None:
        """Complete the current resource."""
        if self.scopes:
            self.bodies.append(self.form.of_scopes(shared, self.scopes))
            self.scopes = []


def parts(found: Sequence[ResourceItems], form: BodyEncoding) -> Iterator[bytes]:
    """Yield parts with all items of the resources, in order."""
    part = _Part(form)
    for resource in found:
        for scope in resource.scopes:
            start, shared_bytes = 0, len(resource.shared) + len(scope.shared)
            for at, item in enumerate(scope.items, 1):
                part.items += 1
                part.size_bytes += len(item)
                if part.is_full(shared_bytes) or at == len(scope.items):
                    part.scopes.append(form.of_items(scope.shared, scope.items[start:at]))
                    start = at
                if part.is_full(shared_bytes):
                    part.end_resource(resource.shared)
                    yield form.of_resources(part.bodies)
                    part = _Part(form)
        part.end_resource(resource.shared)
    if part.bodies:
        yield form.of_resources(part.bodies)


def _resources(body: bytes) -> list[ResourceItems]:
    try:
        return [
            ResourceItems(
                b"".join(body[one.start : one.end] for one in inside if one.number != 2),
                [_scope(body, one) for one in inside if one.number == 2],
            )
            for resource in _fields(body, 0, len(body))
            if resource.number == 1
            for inside in [list(_fields(body, resource.inside, resource.end))]
        ]
    except _GarbledError as exc:
        raise OtlpError("the body is not protobuf: truncated or garbled") from exc


def _scope(body: bytes, scope: _Field) -> ScopeItems:
    items, shared = [], []
    for one in _fields(body, scope.inside, scope.end):
        if one.number == 2:
            items.append(body[one.start : one.end])
        else:
            shared.append(body[one.start : one.end])
    return ScopeItems(b"".join(shared), items)


def _fields(body: bytes, at: int, end: int) -> Iterator[_Field]:
    while at < end:
        start = at
        tag, at = varint(body, at, end)
        number, wire = tag >> 3, tag & 7
        size, inside = value_at(body, at, end, wire)
        at = inside + size
        # Protobuf's parser skips some other unexpected fields.
        if size < 0 or at > end or number < 1 or (number <= 2 and wire != 2):
            raise _GarbledError
        yield _Field(number, start, inside, at)


def _message(number: int, value: bytes) -> bytes:
    size, head = len(value), bytearray([number << 3 | 2])
    while size >= 0x80:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + value


PROTOBUF: Final = BodyEncoding(
    resources=_resources,
    of_items=lambda shared, items: _message(2, b"".join((shared, *items))),
    of_scopes=lambda shared, scopes: _message(1, b"".join((shared, *scopes))),
    of_resources=b"".join,
    nothing=b"",
)
