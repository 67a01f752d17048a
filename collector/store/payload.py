"""Span payloads: attributes, events and links of a span as compressed bytes.

A payload is an OTLP `Span` message without the fields that have columns and without text. The text
is a second message, of attributes only: `store.texts`. Both contain the sender's own bytes and are
compressed with zstd. Payloads use a shared dictionary because attribute names repeat; each frame
names its dictionary, so never change a dictionary's file, only add a new one.
"""

import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from backports import zstd
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from collector.content import ContentPolicy
from collector.contract import AttributeValue, SpanEvent, SpanLink
from collector.contract.attributes import ERROR_TYPE
from collector.dialects import is_event_text, is_text
from collector.otlp import wire
from collector.otlp.received import read_event, read_link
from collector.otlp.values import read_attributes, read_value, write_attribute

_DICTIONARY: Final = Path(__file__).with_name("payload-1.zstd-dictionary")
# Inputs are small: the default hash table of 128 KiB would take longer to clear, and would evict
# everything else from the processor's cache.
_OPTIONS: Final = {
    int(zstd.CompressionParameter.compression_level): 1,
    int(zstd.CompressionParameter.hash_log): 12,
}
# Texts of a few kilobytes repeat little, so most of the gain comes from Huffman coding. These
# options search only for long matches and at fewer positions; at this level zstd would then skip
# Huffman coding, so it is forced. This takes a quarter less time for 7 to 14 % more bytes (prose,
# Python).
_TEXT_OPTIONS: Final = {
    **_OPTIONS,
    int(zstd.CompressionParameter.target_length): 4,
    int(zstd.CompressionParameter.min_match): 7,
    1002: 1,  # ZSTD_c_literalCompressionMode, always; the binding has no name for it
}
_WHOLE: Final = zstd.ZstdCompressor.FLUSH_FRAME


_ERROR_TYPE: Final = ERROR_TYPE.encode()
_TEXTUAL: Final = (str, bytes, tuple, dict)
"""Types of event attributes that can contain text; numbers and flags cannot."""


class Payload(NamedTuple):
    """The attributes, events and links of a span."""

    attributes: dict[str, AttributeValue]
    events: tuple[SpanEvent, ...]
    links: tuple[SpanLink, ...]


def pack(spans: Iterable[tuple[bytes, bytes]], content: ContentPolicy) -> list[bytes]:
    """Return the payload of each span, given two `Span` messages: its attributes and the rest.

    Raises `OtlpError` if an event or a link is malformed or nested too deeply.
    """
    # In protobuf, two concatenated messages are one merged message.
    return _codecs().pack_payloads(
        b"".join(
            (
                _redacted_attributes(attributes, content),
                _redacted_others(others, content) if others else b"",
            )
        )
        for attributes, others in spans
    )


def _redacted_attributes(attributes: bytes, content: ContentPolicy) -> bytes:
    """Return a `Span` message of attributes with `error.type` redacted: it may quote text."""
    if _ERROR_TYPE not in attributes:
        return attributes
    message = trace_pb2.Span.FromString(attributes)
    for pair in message.attributes:
        if pair.key == ERROR_TYPE:
            value = content.apply_label(read_value(pair.value))
            pair.CopyFrom(write_attribute(ERROR_TYPE, value))
    return message.SerializeToString()  # type: ignore[no-any-return]  # the library is untyped


def _redacted_others(others: bytes, content: ContentPolicy) -> bytes:
    message = wire.Span.FromString(others)
    if not (message.events or message.links or message.trace_state):
        return others
    message.trace_state = content.apply_message(message.trace_state) or ""
    events = [
        _redacted(raw, trace_pb2.Span.Event, read_event(raw), content) for raw in message.events
    ]
    links = [
        _redacted(_redacted_trace_state(raw, content), trace_pb2.Span.Link, link, content)
        for raw in message.links
        for link in [read_link(raw)]  # first: its error says what is malformed
    ]
    message.events[:], message.links[:] = events, links
    return message.SerializeToString()  # type: ignore[no-any-return]  # the library is untyped


def _redacted_trace_state(raw: bytes, content: ContentPolicy) -> bytes:
    """Return a link with its trace state redacted by the policy, since it may be any text."""
    message = trace_pb2.Span.Link.FromString(raw)
    if not message.trace_state:
        return raw
    message.trace_state = content.apply_message(message.trace_state) or ""
    return message.SerializeToString()  # type: ignore[no-any-return]  # the library is untyped


def _redacted(raw: bytes, kind: Any, part: SpanEvent | SpanLink, content: ContentPolicy) -> bytes:
    """Return the event or link with its text redacted by the policy; Any: the message class."""
    event = part if isinstance(part, SpanEvent) else None
    words = {n: v for n, v in part.attributes.items() if isinstance(v, _TEXTUAL)}
    text = {n: v for n, v in part.attributes.items() if is_text(n)}
    if event is not None:
        text |= {n: v for n, v in words.items() if is_event_text(n)}
    kept = content.apply(text)
    if event is not None:
        kept |= {n: content.apply_label(v) for n, v in words.items() if n not in text}
    shown = None if event is None else content.apply_name(event.name)
    if not text and not kept and (event is None or shown == event.name):
        return raw
    message = kind.FromString(raw)
    if shown is not None:
        message.name = shown
    del message.attributes[:]
    for name, value in part.attributes.items():
        if name not in text or name in kept:
            message.attributes.append(write_attribute(name, kept.get(name, value)))
    return message.SerializeToString()  # type: ignore[no-any-return]  # the library is untyped


def redacted_resource(raw: bytes, content: ContentPolicy) -> bytes:
    """Return a `Resource` message with its text redacted by the policy."""
    sent = read_attributes(resource_pb2.Resource.FromString(raw).attributes)
    text = {name: value for name, value in sent.items() if is_text(name)}
    if not text:
        return raw
    kept = content.apply(text)
    shown = [
        write_attribute(name, kept.get(name, value))
        for name, value in sent.items()
        if name not in text or name in kept
    ]
    message = resource_pb2.Resource(attributes=shown)
    return message.SerializeToString()  # type: ignore[no-any-return]  # the library is untyped


def unpack(payload: bytes) -> Payload:
    """Return the attributes, events and links in a payload of `pack`."""
    kept = trace_pb2.Span.FromString(_codecs().unpack(payload))
    return Payload(
        attributes=read_attributes(kept.attributes),
        events=tuple(read_event(event.SerializeToString()) for event in kept.events),
        links=tuple(read_link(link.SerializeToString()) for link in kept.links),
    )


def attribute(name: str, value: AttributeValue) -> bytes:
    """Return a `Span` message with one attribute."""
    raw = write_attribute(name, value).SerializeToString()
    return wire.Span(attributes=[raw]).SerializeToString()  # type: ignore[no-any-return]  # the library is untyped


def pack_text(text: bytes) -> bytes:
    """Return the text compressed."""
    return _codecs().pack(text)


def unpack_text(packed: bytes) -> bytes:
    """Return the text compressed by `pack_text`."""
    return _codecs().unpack(packed)


def read_text(message: bytes) -> dict[str, AttributeValue]:
    """Return the attributes of a `Span` message of text."""
    return read_attributes(trace_pb2.Span.FromString(message).attributes)


def pack_resource(raw: bytes) -> bytes:
    """Return a `Resource` message compressed."""
    return _codecs().pack(raw)


def unpack_resource(packed: bytes) -> dict[str, AttributeValue]:
    """Return the attributes of a resource compressed by `pack_resource`."""
    raw = _codecs().unpack(packed)
    return read_attributes(resource_pb2.Resource.FromString(raw).attributes)


class _Codecs(threading.local):
    """zstd's contexts, one set per thread because they are not thread-safe."""

    def __init__(self) -> None:
        self._dictionary = zstd.ZstdDict(_DICTIONARY.read_bytes())
        self._payload = zstd.ZstdCompressor(options=_OPTIONS, zstd_dict=self._dictionary)
        self._plain = zstd.ZstdCompressor(options=_TEXT_OPTIONS)

    def pack_payloads(self, payloads: Iterable[bytes]) -> list[bytes]:
        compress = self._payload.compress
        return [compress(data, _WHOLE) for data in payloads]

    def pack(self, data: bytes) -> bytes:
        return self._plain.compress(data, _WHOLE)

    def unpack(self, packed: bytes) -> bytes:
        return zstd.decompress(packed, self._dictionary)


@cache
def _codecs() -> _Codecs:
    return _Codecs()
