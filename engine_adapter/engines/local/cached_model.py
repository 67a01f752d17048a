"""Forward passes of a causal language model over its KV cache."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from engine_adapter.engines.local.attention import grouped
from engine_adapter.engines.local.draft_tree import DraftTree
from engine_adapter.engines.local.kv_cache import KeyValueCache, check_supported

_PREFILL_TOKENS = 512
"""Prompt tokens per prefill pass: the attention mask grows with it."""


class Pass(NamedTuple):
    """The output of a forward pass."""

    logits: Tensor
    """(batch, tokens, vocabulary); only of the last token during the prefill."""
    hidden: Tensor
    """(batch, tokens, width): the last hidden states, the input of the language model's head."""

    def of(self, rows: Tensor) -> "Pass":
        """Return the outputs of the tokens at `rows`, (batch, n), in that order."""
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
        """The size of its weights in bytes; tied weights count once."""
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
        """Run the model over tokens, (batch, n), placed at each sequence's start in the window.

        `keep`: the number of last tokens to return logits for; 0 for all. In a tree, each token
        attends to the text and to its ancestors, and has the position of its level.
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
            with grouped(self.model):
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
        """Prefill prompts, (batch, n), from position 0; yield one pass per piece."""
        for start in range(0, tokens.shape[1], _PREFILL_TOKENS):
            starts = self._slots[start].expand(len(tokens))
            yield self(tokens[:, start : start + _PREFILL_TOKENS], starts, window, keep=1)
