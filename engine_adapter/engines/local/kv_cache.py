"""A static KV cache, allocated once; each sequence is written at its own position.

Nothing is ever removed. A token at position p attends to the slots 0 … p, and a pass writes its
slots before it reads them. So rejected tokens are discarded by starting the next pass at an earlier
position: nothing attends to the slots after it, and later tokens overwrite them.
"""

from typing import Any

import torch
from torch import Tensor

from engine_adapter.errors import EngineSetupError


class KeyValueCache:
    """A cache for transformers' `past_key_values` argument; its tensors never move."""

    is_compileable = True

    def __init__(self, model: Any, batch: int, capacity: int) -> None:  # Any: has no types
        config = model.config.get_text_config(decoder=True)
        heads = config.num_key_value_heads
        width = getattr(config, "head_dim", None) or (
            config.hidden_size // config.num_attention_heads
        )
        # keys and values first, then layers
        shape = (2, config.num_hidden_layers, batch, capacity, heads, width)
        self.batch, self.capacity = batch, capacity
        self.tensor = torch.zeros(shape, dtype=model.dtype, device=model.device)
        self._rows = torch.arange(batch, device=model.device)[:, None]
        self._slots = self._rows
        self._window = capacity

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return self.tensor.nbytes

    def at(self, slots: Tensor, window: int) -> None:
        """Make the next pass write to `slots`, (batch, tokens), and read the first `window`."""
        self._slots, self._window = slots, window

    def get_seq_length(self, _layer: int = 0) -> int:
        """Return 0: transformers 5.0 asks, and each pass gives its positions and mask itself."""
        return 0

    def move(self, taken: Tensor, to: Tensor) -> None:
        """Copy the slots `taken`, (batch, tokens), to the slots `to`; all are read first."""
        self.tensor[:, :, self._rows, to] = self.tensor[:, :, self._rows, taken]

    def update(
        self, key: Tensor, value: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:  # Any: what other caches of transformers take
        """Write a layer's new keys and values; return all of those in the window."""
        found = []
        for slots, new in zip(self.tensor[:, layer_idx], (key, value), strict=True):
            slots[self._rows, self._slots] = new.transpose(1, 2)
            found.append(slots[:, : self._window].transpose(1, 2))
        return found[0], found[1]


_BY_LENGTH = {"dynamic", "longrope"}
"""Rotary scalings that depend on the largest position in a pass: rejected tokens would change
them."""


def check_supported(model: Any) -> None:  # Any: transformers ships no types
    """Raise `EngineSetupError` unless the model has full attention and plain rotary positions."""
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
