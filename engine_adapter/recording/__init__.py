"""Convert answers to the contract's records, for runs and the router alike."""

from engine_adapter.recording.content import content_of
from engine_adapter.recording.generation import GENERATION_PATHS, fields_of_engine, generation_of

__all__ = ["GENERATION_PATHS", "content_of", "fields_of_engine", "generation_of"]
