"""Keys and values of past tokens, allocated once, written at a position of its own a sequence.

Nothing is ever removed. A token at position p sees the slots 0 … p, and a pass writes its slots
before it reads them. So to take rejected tokens back is to begin the next pass at an earlier
position: what lies behind it is seen by nobody and overwritten by whoever comes there.
"""

from typing import Any

import torch
from torch import Tensor

from engine_adapter.errors import EngineSetupError


class KeyValueCache:
    """What a transformers model takes as `past_key_values`; tensors never move."""

    is_compileable = True

    def __init__(self, model: Any, batch: int, capacity: int) -> None:  # Any: has no types
        config = model.config.get_text_config(decoder=True)
        heads = config.num_key_value_heads
        width = getattr(config, "head_dim", None) or (
            config.hidden_size // config.num_attention_heads
        )
        # keys and values, then layers: the order that a token's heads are written in
        shape = (2, config.num_hidden_layers, batch, capacity, heads, width)
        self.batch, self.capacity = batch, capacity
        self.tensor = torch.zeros(shape, dtype=model.dtype, device=model.device)
        self._rows = torch.arange(batch, device=model.device)[:, None]
        self._slots = self._rows
        self._window = capacity

    @property
    def nbytes(self) -> int:
        """The memory that it holds."""
        return self.tensor.nbytes

    def at(self, slots: Tensor, window: int) -> None:
        """Have the next pass write in these slots, (batch, tokens), and read the first `window`."""
        self._slots, self._window = slots, window

    def move(self, taken: Tensor, to: Tensor) -> None:
        """Copy what stands in some slots, (batch, tokens), to others; all are read first."""
        self.tensor[:, :, self._rows, to] = self.tensor[:, :, self._rows, taken]

    def update(
        self, key: Tensor, value: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:  # Any: what other caches of transformers take
        """Write a layer's new keys and values; return those of all slots in the window."""
        found = []
        for slots, new in zip(self.tensor[:, layer_idx], (key, value), strict=True):
            slots[self._rows, self._slots] = new.transpose(1, 2)
            found.append(slots[:, : self._window].transpose(1, 2))
        return found[0], found[1]


_BY_LENGTH = {"dynamic", "longrope"}
"""Rotary positions that depend on the longest one in a pass: rejected tokens would change them."""


def check_supported(model: Any) -> None:  # Any: transformers ships no types
    """Raise `EngineSetupError` for a model whose passes depend on more than a text's own past."""
    config = model.config.get_text_config(decoder=True)
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    rope = getattr(config, "rope_parameters", None) or {}
    kinds |= {rope.get("rope_type")} & _BY_LENGTH
    if not rope or not hasattr(config, "num_key_value_heads"):
        kinds.add("unknown")
    if kinds:
        raise EngineSetupError(
            f"model: {config.model_type} has {', '.join(sorted(kinds))} attention or positions; "
            "engine: local wanted rotary positions and full attention in every layer, as Llama "
            "and Qwen have them: use engine: transformers"
        )
