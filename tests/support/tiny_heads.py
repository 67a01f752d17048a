"""Heads as a user would write them: a chain and a tree of guesses from the target's states."""

from typing import Any

import torch
from torch import Tensor

from engine_adapter.engines.local import Draft, DrafterMemory, SamplerChain
from engine_adapter.engines.local.cached_model import CachedModel, Pass
from engine_adapter.engines.local.texts import TokenTexts


class HiddenStateHead:
    """One linear map a draft position, as Medusa has it, over the state before the last token.

    The states of a pass are kept at their positions; those of rejected tokens are overwritten, as
    in a key-value cache.
    """

    method = "head"

    def __init__(self, maps: Tensor) -> None:
        """Take the maps, (positions, vocabulary, width)."""
        self._maps = maps

    def attach(self, target: CachedModel) -> DrafterMemory:
        cache = target.cache
        shape = (cache.batch, cache.capacity, self._maps.shape[2])
        self._states = torch.zeros(shape, dtype=self._maps.dtype, device=cache.tensor.device)
        return DrafterMemory(self._maps.nbytes, self._states.nbytes)

    def begin(self, prompts: Tensor, window: int) -> None:
        pass

    def propose(self, texts: TokenTexts, k: int, sampling: SamplerChain) -> Draft:
        del sampling  # each guess is certain: accepted with the target's own probability
        guesses = self._logits(texts)[:, :k].argmax(-1)
        return Draft(guesses, torch.full_like(texts.lengths, guesses.shape[1]))

    def observe(self, starts: Tensor, seen: Pass) -> None:
        places = starts[:, None] + torch.arange(seen.hidden.shape[1], device=starts.device)
        at = places[:, :, None].expand_as(seen.hidden)
        self._states.scatter_(1, at, seen.hidden)

    def _logits(self, texts: TokenTexts) -> Tensor:
        """Return what each position's map says, (batch, positions, vocabulary)."""
        at = (texts.lengths - 2).clamp(min=0)[:, None, None].expand(-1, 1, self._states.shape[2])
        return torch.einsum("bw,kvw->bkv", self._states.gather(1, at)[:, 0], self._maps)


BRANCHES = (-1, -1, 0, 0, 1, 2, 2, 5)
"""Two guesses, two behind the first, and so on down the likeliest path: four levels."""


class HiddenStateTree(HiddenStateHead):
    """The same maps, of which each position's likeliest tokens branch, as Medusa's trees do."""

    def attach(self, target: CachedModel) -> DrafterMemory:
        self._places = torch.tensor(places_of(BRANCHES), device=target.cache.tensor.device)
        return super().attach(target)

    def propose(self, texts: TokenTexts, k: int, sampling: SamplerChain) -> Draft:
        del sampling
        levels, ranks = places_of(BRANCHES[:k])
        likeliest = self._logits(texts).topk(max(ranks) + 1).indices
        guesses = likeliest[:, self._places[0, :k] - 1, self._places[1, :k]]
        return Draft(guesses, torch.full_like(texts.lengths, max(levels)), parents=BRANCHES[:k])


class DraftModelTree:
    """A tree of a draft model's likeliest tokens; it reads the whole text for each of them."""

    method = "head"

    def __init__(self, model: Any) -> None:
        self._model = model

    def attach(self, target: CachedModel) -> DrafterMemory:
        del target
        return DrafterMemory(0, 0)

    def begin(self, prompts: Tensor, window: int) -> None:
        pass

    def propose(self, texts: TokenTexts, k: int, sampling: SamplerChain) -> Draft:
        del sampling
        parents = BRANCHES[:k]
        levels, ranks = places_of(parents)
        guesses = texts.tokens.new_zeros((texts.batch, k))
        for text, length in enumerate(texts.lengths.tolist()):
            for i, parent in enumerate(parents):
                path: list[int] = []
                at = parent
                while at >= 0:
                    path.insert(0, int(guesses[text, at]))
                    at = parents[at]
                read = texts.tokens.new_tensor([[*texts.tokens[text, :length].tolist(), *path]])
                ranked = self._model(read).logits[0, -1].topk(ranks[i] + 1).indices
                guesses[text, i] = ranked[ranks[i]]
        return Draft(guesses, torch.full_like(texts.lengths, max(levels)), parents=parents)

    def observe(self, starts: Tensor, seen: Pass) -> None:
        pass


def places_of(parents: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Return each token's level, from 1 on, and how many before it follow the same one."""
    levels: list[int] = []
    for parent in parents:
        levels.append(levels[parent] + 1 if parent >= 0 else 1)
    return levels, [parents[:i].count(parent) for i, parent in enumerate(parents)]


class ListingHead(HiddenStateTree):
    """The same tree, indexed by lists: each step copies them to the device."""

    def propose(self, texts: TokenTexts, k: int, sampling: SamplerChain) -> Draft:
        levels, ranks = places_of(BRANCHES[:k])
        likeliest = self._logits(texts).topk(max(ranks) + 1).indices
        guesses = likeliest[:, [level - 1 for level in levels], ranks]
        return super().propose(texts, k, sampling)._replace(tokens=guesses)


class ReadingHead(HiddenStateHead):
    """A head that reads a length on the host before it proposes."""

    def propose(self, texts: TokenTexts, k: int, sampling: SamplerChain) -> Draft:
        if texts.lengths[0].item() > texts.capacity:
            raise ValueError("wanted a text within its capacity")
        return super().propose(texts, k, sampling)


def branching(model: Any) -> HiddenStateTree:
    """Return a tree of the target's likeliest tokens at its last position."""
    return HiddenStateTree(maps(model))


def last_token_again(model: Any) -> HiddenStateHead:
    """Return a head that repeats the target's last token at every position."""
    return HiddenStateHead(maps(model))


def reading(model: Any) -> ReadingHead:
    """Return `last_token_again` as a head that reads a value."""
    return ReadingHead(maps(model))


def maps(model: Any) -> Tensor:
    """Return the target's own output map at eight positions."""
    found: Tensor = model.get_output_embeddings().weight.detach().expand(8, -1, -1).clone()
    return found
