"""One forward pass of a causal language model over its cache: tokens and positions to logits."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from engine_adapter.engines.local.draft_tree import DraftTree
from engine_adapter.engines.local.kv_cache import KeyValueCache, check_supported

_PREFILL_TOKENS = 512
"""Tokens of a prompt that are read at once: the mask grows with it."""


class Pass(NamedTuple):
    """What a forward pass found."""

    logits: Tensor
    """(batch, tokens, vocabulary); of the last token alone while a prompt is read."""
    hidden: Tensor
    """(batch, tokens, width): what the language model's head was given."""

    def of(self, rows: Tensor) -> "Pass":
        """Return some of its tokens, (batch, n), in this order."""
        found = (x.gather(1, rows[:, :, None].expand(-1, -1, x.shape[2])) for x in self)
        return Pass(*found)


class CachedModel:
    """A model with a cache for `batch` sequences of up to `capacity` tokens."""

    def __init__(
        self, model: Any, batch: int, capacity: int, cache: KeyValueCache | None = None
    ) -> None:  # Any: transformers ships no types
        check_supported(model)
        self.model = model
        self.cache = cache or KeyValueCache(model, batch, capacity)
        device = model.device
        self._slots = torch.arange(self.cache.capacity, device=device)
        self._barred = torch.tensor(torch.finfo(model.dtype).min, dtype=model.dtype, device=device)
        self._seen = torch.zeros((), dtype=model.dtype, device=device)

    @property
    def weight_bytes(self) -> int:
        """The memory of its weights; tied ones count once."""
        return sum(p.nbytes for p in self.model.parameters())

    def __call__(
        self,
        tokens: Tensor,
        starts: Tensor,
        window: int,
        *,
        keep: int = 0,
        tree: DraftTree | None = None,
    ) -> Pass:
        """Read tokens, (batch, n), from each sequence's start on; all lie within the window.

        `keep` is the number of last tokens whose logits are wanted; 0 wants all. Of a tree each
        token sees the text and those that it follows, and stands at its level's position.
        """
        slots = starts[:, None] + self._slots[: tokens.shape[1]]
        if tree is None:
            positions = slots
            seen = self._slots[:window] <= positions[:, :, None]
        else:
            positions = starts[:, None] + tree.levels
            seen = tree.seen(self._slots[:window] - starts[:, None])
        self.cache.at(slots, window)
        hidden: list[Tensor] = []
        hook = self.model.base_model.register_forward_hook(
            lambda _module, _args, output: hidden.append(output.last_hidden_state)
        )
        try:
            logits = self.model(
                input_ids=tokens,
                position_ids=positions,
                attention_mask=torch.where(seen, self._seen, self._barred)[:, None],
                past_key_values=self.cache,
                use_cache=True,
                logits_to_keep=keep,
            ).logits
        finally:
            hook.remove()
        return Pass(logits, hidden[0])

    def read(self, tokens: Tensor, window: int) -> Iterator[Pass]:
        """Read prompts, (batch, n), from position 0 on, a piece at each turn."""
        for start in range(0, tokens.shape[1], _PREFILL_TOKENS):
            starts = self._slots[start].expand(len(tokens))
            yield self(tokens[:, start : start + _PREFILL_TOKENS], starts, window, keep=1)
