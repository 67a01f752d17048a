"""Redaction of the protobuf messages that are stored: attributes, events, links and resources."""

from typing import Any, Final

from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from collector.content import ContentPolicy
from collector.contract import AttributeValue, SpanEvent, SpanLink
from collector.contract.attributes import ERROR_TYPE
from collector.dialects import is_event_text, is_text
from collector.protobuf import wire
from collector.protobuf.parts import read_event, read_link
from collector.protobuf.values import read_attributes, read_value, write_attribute

_ERROR_TYPE: Final = ERROR_TYPE.encode()
_TEXTUAL: Final = (str, bytes, tuple, dict)
"""Types of event attributes that can contain text; numbers and flags cannot."""


def span(attributes: bytes, others: bytes, content: ContentPolicy) -> bytes:
    """Return the `Span` message to store, given two: its attributes and the rest.

    Raises `OtlpError` if an event or a link is malformed or nested too deeply.
    """
    kept = _redacted_attributes(attributes, content)
    # In protobuf, two concatenated messages are one merged message.
    return kept + _redacted_others(others, content) if others else kept


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
        for link in [read_link(raw)]  # first: its error names the fault
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


def resource(raw: bytes, content: ContentPolicy) -> bytes:
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


def attribute(name: str, value: AttributeValue) -> bytes:
    """Return a `Span` message with one attribute."""
    raw = write_attribute(name, value).SerializeToString()
    return wire.Span(attributes=[raw]).SerializeToString()  # type: ignore[no-any-return]  # the library is untyped
