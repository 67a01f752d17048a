"""What a rollout changes: the one thing in which its arms are to differ."""

from enum import StrEnum


class Change(StrEnum):
    """A change to serving."""

    SPECULATION = "speculation"
    DRAFT_SWAP = "draft_swap"
    """Both arms speculate, with another draft, method or k."""
    KV_CACHE_DTYPE = "kv_cache_dtype"
    QUANTIZATION = "quantization"
    """Of the target's weights."""
    ENGINE_UPGRADE = "engine_upgrade"
    PREFIX_CACHE = "prefix_cache"
    ATTENTION_KERNEL = "attention_kernel"
    OTHER = "other"
    """Anything else: differences are named, and none is held against the arms."""

    @property
    def is_of_drafts(self) -> bool:
        """Say whether the candidate has to draft."""
        return self in (Change.SPECULATION, Change.DRAFT_SWAP)
