"""The kind of change that a rollout makes: the one difference that its arms should have."""

from enum import StrEnum


class Change(StrEnum):
    """A kind of change to serving."""

    SPECULATION = "speculation"
    DRAFT_SWAP = "draft_swap"
    """Both arms speculate, with a different draft model, method or k."""
    KV_CACHE_DTYPE = "kv_cache_dtype"
    QUANTIZATION = "quantization"
    """Quantization of the target's weights."""
    ENGINE_UPGRADE = "engine_upgrade"
    PREFIX_CACHE = "prefix_cache"
    ATTENTION_KERNEL = "attention_kernel"
    OTHER = "other"
    """Anything else: differences are named, and none is held against the arms."""

    @property
    def is_of_drafts(self) -> bool:
        """Whether the candidate must draft tokens."""
        return self in (Change.SPECULATION, Change.DRAFT_SWAP)
