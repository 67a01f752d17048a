"""A large body of traces in parts, each a body of its own, so that others come between them.

What a part's spans share, their resource and scope, stands in each part. Nothing is decoded here:
a body is cut where its fields or values end.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from collector.errors import OtlpError
from collector.otlp.wire_fields import value_at, varint

WHOLE_BYTES: Final = 128 * 1024
"""Up to this length, a body is a part of its own."""
_MOST_SPANS: Final = 1024
_ENOUGH_BYTES: Final = 512 * 1024
_SHARED_TIMES: Final = 4
"""A part is so many times as long as what its spans share, for that is read in each."""


class _GarbledError(Exception):
    """The bytes are no fields, or fields of a form that OTLP does not use."""


class Scope(NamedTuple):
    """Spans that share a scope; all as sent, tags included."""

    shared: bytes
    """The scope's message without its spans."""
    spans: list[bytes]


class Sender(NamedTuple):
    """Scopes that share a resource."""

    shared: bytes
    """The resource's message without its scopes, as sent."""
    scopes: list[Scope]


class Form(NamedTuple):
    """How a body is cut and put together in one encoding."""

    senders: Callable[[bytes], list[Sender]]
    """Raises `OtlpError` for a body whose parts cannot be told."""
    of_spans: Callable[[bytes, Sequence[bytes]], bytes]
    """Makes a scope of what its spans share, and of them."""
    of_scopes: Callable[[bytes, Sequence[bytes]], bytes]
    """Makes a sender of what its scopes share, and of them."""
    of_senders: Callable[[Sequence[bytes]], bytes]
    """Makes a body."""
    nothing: bytes
    """A resource or scope that says nothing."""


class _Field(NamedTuple):
    number: int
    start: int
    """Of all of it."""
    inside: int
    """Where its value begins."""
    end: int


@dataclass
class _Part:
    """A part while it is filled."""

    form: Form
    bodies: list[bytes] = field(default_factory=list)
    """Of senders that are all in it."""
    scopes: list[bytes] = field(default_factory=list)
    """Of the sender whose turn it is."""
    spans: int = 0
    size_bytes: int = 0

    def is_full(self, shared_bytes: int) -> bool:
        """Say whether it is enough, the more so the more would be read again in the next."""
        is_enough = self.spans >= _MOST_SPANS or self.size_bytes >= _ENOUGH_BYTES
        return is_enough and self.size_bytes >= _SHARED_TIMES * shared_bytes

    def end_sender(self, shared: bytes) -> None:
        """Go on to the next sender."""
        if self.scopes:
            self.bodies.append(self.form.of_scopes(shared, self.scopes))
            self.scopes = []


def parts(body: bytes, form: Form) -> Iterator[bytes]:
    """Yield the parts of a body, all its spans in their order.

    A body that is short, holds no span, or whose fields cannot be told, is one part.
    """
    if len(body) > WHOLE_BYTES:
        try:
            found = form.senders(body)
        except OtlpError:  # its reader will say why
            found = []
        if any(scope.spans for sender in found for scope in sender.scopes):
            yield from _cut(found, form)
            return
    yield body


def _cut(found: list[Sender], form: Form) -> Iterator[bytes]:
    part = _Part(form)
    for sender in found:
        for scope in sender.scopes:
            start, shared_bytes = 0, len(sender.shared) + len(scope.shared)
            for at, span in enumerate(scope.spans, 1):
                part.spans += 1
                part.size_bytes += len(span)
                if part.is_full(shared_bytes) or at == len(scope.spans):
                    part.scopes.append(form.of_spans(scope.shared, scope.spans[start:at]))
                    start = at
                if part.is_full(shared_bytes):
                    part.end_sender(sender.shared)
                    yield form.of_senders(part.bodies)
                    part = _Part(form)
        part.end_sender(sender.shared)
    if part.bodies:
        yield form.of_senders(part.bodies)


def _senders(body: bytes) -> list[Sender]:
    try:
        return [
            Sender(
                b"".join(body[one.start : one.end] for one in inside if one.number != 2),
                [_scope(body, one) for one in inside if one.number == 2],
            )
            for resource_spans in _fields(body, 0, len(body))
            if resource_spans.number == 1
            for inside in [list(_fields(body, resource_spans.inside, resource_spans.end))]
        ]
    except _GarbledError as exc:
        raise OtlpError("the body is no protobuf: truncated or garbled") from exc


def _scope(body: bytes, scope_spans: _Field) -> Scope:
    spans, shared = [], []
    for one in _fields(body, scope_spans.inside, scope_spans.end):
        if one.number == 2:
            spans.append(body[one.start : one.end])
        else:
            shared.append(body[one.start : one.end])
    return Scope(b"".join(shared), spans)


def _fields(body: bytes, at: int, end: int) -> Iterator[_Field]:
    while at < end:
        start = at
        tag, at = varint(body, at, end)
        number, wire = tag >> 3, tag & 7
        size, inside = value_at(body, at, end, wire)
        at = inside + size
        # What is no message here is protobuf's to refuse, or to pass over.
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


PROTOBUF: Final = Form(
    senders=_senders,
    of_spans=lambda shared, spans: _message(2, b"".join((shared, *spans))),
    of_scopes=lambda shared, scopes: _message(1, b"".join((shared, *scopes))),
    of_senders=b"".join,
    nothing=b"",
)
