"""Span payloads: what a span row keeps as bytes, and the text that is kept apart.

A payload is an OTLP `Span` message without the fields that have columns and without text; the text
is another one, of attributes alone. Both are the sender's own bytes, compressed with zstd. Payloads
share a dictionary, for their attributes' names are always the same; the frame names the dictionary,
and the file of a dictionary is never changed, only a further one added.
"""

import threading
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import zstandard
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from collector import otlp_wire
from collector.contract import AttributeValue, SpanEvent, SpanLink
from collector.otlp import read_event, read_link
from collector.otlp_values import read_attributes

_DICTIONARY: Final = Path(__file__).with_name("payload-1.zstd-dictionary")
_LEVEL: Final = 1
# Fields of a span that have no column, attributes apart.
_UNTYPED: Final = (
    "trace_state",
    "dropped_attributes_count",
    "dropped_events_count",
    "dropped_links_count",
    "flags",
)


class Payload(NamedTuple):
    """What a payload holds."""

    attributes: dict[str, AttributeValue]
    events: tuple[SpanEvent, ...]
    links: tuple[SpanLink, ...]


def pack(attributes: Sequence[bytes], message: Any) -> bytes:
    """Return the payload of a span; Any: `otlp_wire.Span`, whose attributes are not looked at.

    `attributes` are `KeyValue` messages.
    """
    kept = otlp_wire.Span(attributes=attributes)
    if message.events:
        kept.events.extend(message.events)
    if message.links:
        kept.links.extend(message.links)
    for name in _UNTYPED:
        if value := getattr(message, name):
            setattr(kept, name, value)
    return _codecs().payload.compress(kept.SerializeToString())


def unpack(payload: bytes) -> Payload:
    """Return what `pack` was given."""
    kept = trace_pb2.Span.FromString(_codecs().decompressor.decompress(payload))
    return Payload(
        attributes=read_attributes(kept.attributes),
        events=tuple(read_event(event.SerializeToString()) for event in kept.events),
        links=tuple(read_link(link.SerializeToString()) for link in kept.links),
    )


def pack_attributes(attributes: Iterable[bytes]) -> bytes:
    """Return `KeyValue` messages as one compressed value."""
    kept = otlp_wire.Span(attributes=attributes).SerializeToString()
    return _codecs().attributes.compress(kept)


def pack_resource(raw: bytes) -> bytes:
    """Return a `Resource` message as a compressed value."""
    return _codecs().attributes.compress(raw)


def unpack_resource(packed: bytes) -> dict[str, AttributeValue]:
    """Return the attributes of the resource that `pack_resource` was given."""
    raw = _codecs().decompressor.decompress(packed)
    return read_attributes(resource_pb2.Resource.FromString(raw).attributes)


def unpack_attributes(packed: bytes) -> dict[str, AttributeValue]:
    """Return the attributes that `pack_attributes` was given."""
    kept = trace_pb2.Span.FromString(_codecs().decompressor.decompress(packed))
    return read_attributes(kept.attributes)


class _Codecs(threading.local):
    """zstd's contexts, which no two threads may use at once."""

    def __init__(self) -> None:
        dictionary = zstandard.ZstdCompressionDict(_DICTIONARY.read_bytes())
        self.payload = zstandard.ZstdCompressor(level=_LEVEL, dict_data=dictionary)
        self.attributes = zstandard.ZstdCompressor(level=_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)


@cache
def _codecs() -> _Codecs:
    return _Codecs()
