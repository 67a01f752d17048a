"""A head as a user would write it: it guesses from the target's last hidden state."""

from typing import Any

import torch
from torch import Tensor

from engine_adapter.engines.local import Draft, Held, Sampling
from engine_adapter.engines.local.cached_model import CachedModel, Pass
from engine_adapter.engines.local.texts import Texts


class HiddenStateHead:
    """One linear map a draft position, as Medusa has it, over the state before the last token.

    The states of a pass are kept at their positions; those of rejected tokens are overwritten, as
    in a key-value cache.
    """

    method = "head"

    def __init__(self, maps: Tensor) -> None:
        """Take the maps, (positions, vocabulary, width)."""
        self._maps = maps

    def attach(self, target: CachedModel) -> Held:
        cache = target.cache
        shape = (cache.batch, cache.capacity, self._maps.shape[2])
        self._states = torch.zeros(shape, dtype=self._maps.dtype, device=cache.tensor.device)
        return Held(self._maps.nbytes, self._states.nbytes)

    def begin(self, prompts: Tensor, window: int) -> None:
        pass

    def propose(self, texts: Texts, k: int, sampling: Sampling) -> Draft:
        del sampling  # each guess is certain: accepted with the target's own probability
        at = (texts.lengths - 2).clamp(min=0)[:, None, None].expand(-1, 1, self._states.shape[2])
        state = self._states.gather(1, at)[:, 0]
        guesses = torch.einsum("bw,kvw->bkv", state, self._maps[:k]).argmax(-1)
        return Draft(guesses, torch.full_like(texts.lengths, guesses.shape[1]))

    def observe(self, starts: Tensor, seen: Pass) -> None:
        places = starts[:, None] + torch.arange(seen.hidden.shape[1], device=starts.device)
        at = places[:, :, None].expand_as(seen.hidden)
        self._states.scatter_(1, at, seen.hidden)


def last_token_again(model: Any) -> HiddenStateHead:
    """Return a head that repeats what the target said last, at every position."""
    return HiddenStateHead(model.get_output_embeddings().weight.detach().expand(8, -1, -1).clone())
