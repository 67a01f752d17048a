"""The compiled reader of trace bodies, if it was built.

It is five times as fast as protobuf and Python, but only handles plain bodies. All others are read
by protobuf and Python, so that without it the collector behaves the same, only slower.
"""

import threading
from typing import Final

from collector.errors import OtlpError
from collector.otlp import attribute_facts
from collector.otlp.received import Attributes, ReceivedSpan, read_resource

try:
    from collector.otlp._span_reader import SpanReader
except ImportError:  # there was no compiler when this was installed
    SpanReader = None  # type: ignore[assignment,misc]  # checked below

_MOST_KEYS: Final = 4096


class _Readers(threading.local):
    """One reader per thread, because it caches keys."""

    def __init__(self) -> None:
        self.reader = SpanReader(
            span=ReceivedSpan,
            attributes=Attributes,
            resource=read_resource,
            describe=attribute_facts.describe,
            read_attribute=attribute_facts.read,
        )


_readers = None if SpanReader is None else _Readers()


def is_compiled() -> bool:
    """Return whether there is a compiled reader."""
    return _readers is not None


def read(body: bytes) -> list[ReceivedSpan] | None:
    """Return the spans of a protobuf body, or None if protobuf and Python have to read it."""
    if _readers is None:
        return None
    reader = _readers.reader
    if reader.known() > _MOST_KEYS:  # senders choose the keys
        reader.forget()
    try:
        return reader.read(body)
    except OtlpError:  # an attribute's error, maybe of a span that is rejected for another reason
        return None
