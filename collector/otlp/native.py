"""The compiled reader of trace bodies, where there is one.

It is five times as fast as protobuf and Python, and knows plain bodies alone: what it does not read
is read the long way, so that the collector is the same without it, and slower.
"""

import threading
from typing import Final

from collector.errors import OtlpError
from collector.otlp import attribute_facts
from collector.otlp.received import Attributes, ReceivedSpan, read_resource

try:
    from collector.otlp._span_reader import SpanReader
except ImportError:  # there was no compiler when this was installed
    SpanReader = None  # type: ignore[assignment,misc]  # it is asked for below

_MOST_KEYS: Final = 4096


class _Readers(threading.local):
    """One reader a thread: it keeps what it knows of keys, span by span."""

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
    """Say whether there is a compiled reader."""
    return _readers is not None


def read(body: bytes) -> list[ReceivedSpan] | None:
    """Return the spans of a protobuf body, or None where it has to be read the long way."""
    if _readers is None:
        return None
    reader = _readers.reader
    if reader.known() > _MOST_KEYS:  # they are the senders' to choose
        reader.forget()
    try:
        return reader.read(body)
    except OtlpError:  # of an attribute, perhaps of a span that is rejected for another reason
        return None
