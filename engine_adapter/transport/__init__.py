"""The HTTP client of engines: requests, server-sent events with arrival times, typed failures."""

from engine_adapter.transport.client import HttpClient, Reply
from engine_adapter.transport.deadlines import Deadlines, Timeouts
from engine_adapter.transport.event_stream import EventStream, JsonEvent, RecognizedEvents
from engine_adapter.transport.events import Event, EventDecoder

__all__ = [
    "Deadlines",
    "Event",
    "EventDecoder",
    "EventStream",
    "HttpClient",
    "JsonEvent",
    "RecognizedEvents",
    "Reply",
    "Timeouts",
]
