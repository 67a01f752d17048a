"""Splits a large trace body into parts, each a complete body, so that bodies are interleaved.

Each part repeats the resource and scope of its spans. Nothing is decoded here: a body is cut at the
boundaries of its fields or values.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from collector.errors import OtlpError
from collector.otlp.wire_fields import value_at, varint

WHOLE_BYTES: Final = 128 * 1024
"""Bodies up to this length are not split."""
_MOST_SPANS: Final = 1024
_ENOUGH_BYTES: Final = 512 * 1024
_SHARED_TIMES: Final = 4
"""A part is at least this many times as long as its resource and scope, which repeat in each."""


class _GarbledError(Exception):
    """The bytes are not protobuf fields, or have wire types that OTLP does not use."""


class ScopeSpans(NamedTuple):
    """Spans that share a scope, as sent, including their tags: the OTLP message of this name."""

    shared: bytes
    """The scope's message without its spans."""
    spans: list[bytes]


class ResourceSpans(NamedTuple):
    """Scopes that share a resource: the OTLP message of this name."""

    shared: bytes
    """The resource's message without its scopes, as sent."""
    scopes: list[ScopeSpans]


class BodyEncoding(NamedTuple):
    """Functions that split and assemble bodies of one encoding."""

    resources: Callable[[bytes], list[ResourceSpans]]
    """Splits a body into resources; raises `OtlpError` if its structure is malformed."""
    of_spans: Callable[[bytes, Sequence[bytes]], bytes]
    """Assembles a scope from its shared part and its spans."""
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
    spans: int = 0
    size_bytes: int = 0

    def is_full(self, shared_bytes: int) -> bool:
        """Return whether the part is large enough, also relative to the shared bytes."""
        is_enough = self.spans >= _MOST_SPANS or self.size_bytes >= _ENOUGH_BYTES
        return is_enough and self.size_bytes >= _SHARED_TIMES * shared_bytes

    def end_resource(self, shared: bytes) -> None:
        """Complete the current resource."""
        if self.scopes:
            self.bodies.append(self.form.of_scopes(shared, self.scopes))
            self.scopes = []


def parts(
    body: bytes, form: BodyEncoding, prune: Callable[[list[ResourceSpans]], None]
) -> Iterator[bytes]:
    """Yield the parts of a body, with the spans that `prune` leaves in order.

    A body that is short, has no spans, or is malformed, is one part, which is not pruned.
    """
    if len(body) > WHOLE_BYTES:
        try:
            found = form.resources(body)
        except OtlpError:  # its decoder reports the error
            found = []
        if any(scope.spans for resource in found for scope in resource.scopes):
            prune(found)
            yield from _cut(found, form)
            return
    yield body


def _cut(found: list[ResourceSpans], form: BodyEncoding) -> Iterator[bytes]:
    part = _Part(form)
    for resource in found:
        for scope in resource.scopes:
            start, shared_bytes = 0, len(resource.shared) + len(scope.shared)
            for at, span in enumerate(scope.spans, 1):
                part.spans += 1
                part.size_bytes += len(span)
                if part.is_full(shared_bytes) or at == len(scope.spans):
                    part.scopes.append(form.of_spans(scope.shared, scope.spans[start:at]))
                    start = at
                if part.is_full(shared_bytes):
                    part.end_resource(resource.shared)
                    yield form.of_resources(part.bodies)
                    part = _Part(form)
        part.end_resource(resource.shared)
    if part.bodies:
        yield form.of_resources(part.bodies)


def _resources(body: bytes) -> list[ResourceSpans]:
    try:
        return [
            ResourceSpans(
                b"".join(body[one.start : one.end] for one in inside if one.number != 2),
                [_scope(body, one) for one in inside if one.number == 2],
            )
            for resource_spans in _fields(body, 0, len(body))
            if resource_spans.number == 1
            for inside in [list(_fields(body, resource_spans.inside, resource_spans.end))]
        ]
    except _GarbledError as exc:
        raise OtlpError("the body is no protobuf: truncated or garbled") from exc


def _scope(body: bytes, scope_spans: _Field) -> ScopeSpans:
    spans, shared = [], []
    for one in _fields(body, scope_spans.inside, scope_spans.end):
        if one.number == 2:
            spans.append(body[one.start : one.end])
        else:
            shared.append(body[one.start : one.end])
    return ScopeSpans(b"".join(shared), spans)


def _fields(body: bytes, at: int, end: int) -> Iterator[_Field]:
    while at < end:
        start = at
        tag, at = varint(body, at, end)
        number, wire = tag >> 3, tag & 7
        size, inside = value_at(body, at, end, wire)
        at = inside + size
        # Protobuf's parser refuses or skips other unexpected fields.
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
    of_spans=lambda shared, spans: _message(2, b"".join((shared, *spans))),
    of_scopes=lambda shared, scopes: _message(1, b"".join((shared, *scopes))),
    of_resources=b"".join,
    nothing=b"",
)
