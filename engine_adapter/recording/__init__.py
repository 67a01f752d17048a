"""Answers as the contract's records: one mapping, for whoever asked."""

from engine_adapter.recording.content import content_of
from engine_adapter.recording.generation import GENERATION_PATHS, generation_of

__all__ = ["GENERATION_PATHS", "content_of", "generation_of"]
