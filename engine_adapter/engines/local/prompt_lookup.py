"""Propose what followed the last tokens where they stood before: no model, and on any device."""

import torch
from torch import Tensor

from engine_adapter.engines.local.cached_model import CachedModel, Pass
from engine_adapter.engines.local.drafters import Held
from engine_adapter.engines.local.sampling import Draft, Sampling
from engine_adapter.engines.local.texts import Texts, among

LONGEST = 2
"""Tokens that must be equal, else one fewer."""


class PromptLookup:
    """The continuation of the earliest place that ends as the text does."""

    method = "prompt_lookup"

    def __init__(self, ends: Tensor) -> None:
        """Never propose one of `ends`, nor what stands behind it."""
        self._ends = ends

    def attach(self, target: CachedModel) -> Held:
        """Hold nothing."""
        del target
        return Held(0, 0)

    def begin(self, prompts: Tensor, window: int) -> None:
        """Read nothing: the texts are looked up as they are."""

    def propose(self, texts: Texts, k: int, sampling: Sampling) -> Draft:
        """Return up to k tokens; none where the text's end never stood before."""
        del sampling
        follows = torch.zeros_like(texts.lengths)  # where a continuation begins; 0 is nowhere
        for size in range(1, LONGEST + 1):  # the longest match is written last
            found = self._earliest(texts, size)
            follows = torch.where(found > 0, found, follows)
        places = (follows[:, None] + texts.places[:k]).clamp(max=texts.capacity - 1)
        tokens = texts.tokens.gather(1, places)
        usable = (places < texts.lengths[:, None]) & ~among(tokens, self._ends)
        lengths = usable.long().cumprod(1).sum(1)
        return Draft(tokens, lengths * (follows > 0))

    def observe(self, starts: Tensor, seen: Pass) -> None:
        """See nothing."""

    @staticmethod
    def _earliest(texts: Texts, size: int) -> Tensor:
        """Return the place behind the first earlier match of the last `size` tokens, or 0."""
        ahead = texts.places[:size]
        tail = texts.tokens.gather(1, (texts.lengths[:, None] - size + ahead).clamp(min=0))
        equal = (texts.tokens.unfold(1, size, 1) == tail[:, None]).all(-1)
        behind = texts.places[size : equal.shape[1] + size]
        earlier = behind < texts.lengths[:, None]
        found = equal[:, : len(behind)] & earlier
        first = found.long().argmax(1)
        return torch.where(found.any(1), first + size, torch.zeros_like(first))
