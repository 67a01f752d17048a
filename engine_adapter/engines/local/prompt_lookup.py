"""Prompt lookup: propose the tokens that followed an earlier occurrence of the last tokens."""

import torch
from torch import Tensor

from engine_adapter.engines.local.cached_model import CachedModel, Pass
from engine_adapter.engines.local.drafters import DrafterMemory
from engine_adapter.engines.local.sampling import Draft, SamplerChain
from engine_adapter.engines.local.texts import TokenTexts, among

LONGEST = 2
"""Number of last tokens to match; if they do not occur earlier, match one fewer."""


class PromptLookup:
    """Proposes the continuation of the earliest match of the text's last tokens."""

    method = "prompt_lookup"

    def __init__(self, ends: Tensor) -> None:
        """Take the end tokens: neither they nor the tokens after them are proposed."""
        self._ends = ends

    def attach(self, target: CachedModel) -> DrafterMemory:
        """Allocate nothing."""
        del target
        return DrafterMemory(0, 0)

    def begin(self, prompts: Tensor, window: int) -> None:
        """Do nothing: `propose` searches the texts themselves."""

    def propose(self, texts: TokenTexts, k: int, sampling: SamplerChain) -> Draft:
        """Return up to k tokens; none if the text's last tokens do not occur earlier."""
        del sampling
        follows = torch.zeros_like(texts.lengths)  # start of a continuation; 0 means none
        for size in range(1, LONGEST + 1):  # the longest match is written last
            found = self._earliest(texts, size)
            follows = torch.where(found > 0, found, follows)
        places = (follows[:, None] + texts.places[:k]).clamp(max=texts.capacity - 1)
        tokens = texts.tokens.gather(1, places)
        usable = (places < texts.lengths[:, None]) & ~among(tokens, self._ends)
        lengths = usable.long().cumprod(1).sum(1)
        return Draft(tokens, lengths * (follows > 0))

    def observe(self, starts: Tensor, seen: Pass) -> None:
        """Do nothing."""

    @staticmethod
    def _earliest(texts: TokenTexts, size: int) -> Tensor:
        """Return the position after the first earlier match of the last `size` tokens, else 0."""
        ahead = texts.places[:size]
        tail = texts.tokens.gather(1, (texts.lengths[:, None] - size + ahead).clamp(min=0))
        equal = (texts.tokens.unfold(1, size, 1) == tail[:, None]).all(-1)
        behind = texts.places[size : equal.shape[1] + size]
        earlier = behind < texts.lengths[:, None]
        found = equal[:, : len(behind)] & earlier
        first = found.long().argmax(1)
        return torch.where(found.any(1), first + size, torch.zeros_like(first))
