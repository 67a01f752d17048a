"""The reference draft–verify engine: small, exact, with static caches and, on GPUs, CUDA graphs."""

from engine_adapter.engines.local.decode import DraftVerify, Job, generate
from engine_adapter.engines.local.draft_length import Adaptive, ByBatch, DraftLength, Fixed
from engine_adapter.engines.local.drafters import (
    Drafter,
    DrafterMemory,
    EarlyExitDrafter,
    ModelDrafter,
)
from engine_adapter.engines.local.endings import Ending
from engine_adapter.engines.local.prompt_lookup import PromptLookup
from engine_adapter.engines.local.sampling import Draft, SamplerChain

__all__ = [
    "Adaptive",
    "ByBatch",
    "Draft",
    "DraftLength",
    "DraftVerify",
    "Drafter",
    "DrafterMemory",
    "EarlyExitDrafter",
    "Ending",
    "Fixed",
    "Job",
    "ModelDrafter",
    "PromptLookup",
    "SamplerChain",
    "generate",
]
