"""Engines: one protocol, and one module per engine."""

from engine_adapter.engines.answer import Answer
from engine_adapter.engines.base import (
    Chunk,
    Engine,
    EngineInfo,
    Item,
    Probe,
    Request,
    Sent,
)
from engine_adapter.engines.opener import EngineOpener, reader_of

__all__ = [
    "Answer",
    "Chunk",
    "Engine",
    "EngineInfo",
    "EngineOpener",
    "Item",
    "Probe",
    "Request",
    "Sent",
    "reader_of",
]
