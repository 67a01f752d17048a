"""SYNTHETIC: a random-weight target of a real model's shape, and a draft with chosen agreement.

For timing the loop at real sizes without a download. Its text is noise, and its acceptance is a
setting, not a finding. The draft is the target's first layers with its norm and head; the upper
layers' contribution to the residual stream is scaled until the two agree as often as wanted.

Agreement is the probability that rejection sampling accepts a draft token, Σ min(p, q), at
temperature 1: a random model's greedy text soon repeats itself, which would distort acceptance.
"""

from typing import Any, Final, NamedTuple

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

from engine_adapter.engines.local.drafters import lower_layers
from engine_adapter.engines.local.sampling import SamplerChain

SAMPLING: Final = SamplerChain(temperature=1.0)
"""The sampling that the agreement refers to."""
_LOGIT_SPREAD = 3.0
"""Standard deviation of a random target's logits: neither flat nor certain."""
_TEXTS, _TOKENS = 16, 64
"""Texts, and tokens per text, over which agreement is measured: about 1,000 positions."""
_PIECES = 4
"""The texts are read in this many pieces: a large vocabulary's distributions take memory."""
_LEAST, _MOST = 2.0**-12, 2.0**6
_HALVINGS = 24
_CLOSE = 0.003


class Shape(NamedTuple):
    """Sizes of a model; `qwen` names the family, else it is a Llama."""

    hidden: int
    feed_forward: int
    layers: int
    heads: int
    key_value_heads: int
    vocabulary: int
    qwen: bool = False


SHAPES: Final = {
    "tiny": Shape(64, 128, 6, 4, 2, 256),
    "small": Shape(512, 1408, 12, 8, 8, 8000),
    "llama-1b": Shape(2048, 8192, 16, 32, 8, 128_256),
    "llama-7b": Shape(4096, 11_008, 32, 32, 32, 32_000),
    "llama-13b": Shape(5120, 13_824, 40, 40, 40, 32_000),
    "qwen-7b": Shape(3584, 18_944, 28, 28, 4, 152_064, qwen=True),
}


class CalibratedPair:
    """A target and its draft; `dial` sets their agreement, in place."""

    def __init__(
        self,
        shape: Shape,
        *,
        draft_layers: int = 2,
        context: int = 8192,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
    ) -> None:
        """Draw the weights; the draft shares the target's weights without a copy."""
        torch.manual_seed(seed)
        loader: Any = AutoModelForCausalLM  # Any: transformers ships no types
        with torch.device(device):
            made = loader.from_config(_config(shape, context), dtype=dtype)
            self._contexts = torch.randint(shape.vocabulary, (_TEXTS, _TOKENS))
        self.target: Any = made.eval().requires_grad_(requires_grad=False)
        self.target.get_output_embeddings().weight.normal_(0, _LOGIT_SPREAD / shape.hidden**0.5)
        self.draft = lower_layers(self.target, draft_layers)
        self._scale = 1.0
        self._upper = [
            weight
            for layer in self.target.base_model.layers[draft_layers:]
            for weight in (layer.self_attn.o_proj.weight, layer.mlp.down_proj.weight)
        ]

    def dial(self, wanted: float) -> float:
        """Scale the upper layers until the wanted agreement is met; return the agreement reached.

        Raises `ValueError` unless 0 < `wanted` < 1.
        """
        if not 0 < wanted < 1:
            raise ValueError(f"wanted: {wanted}; an agreement lies between 0 and 1")
        low, high, now = _LEAST, _MOST, 0.0
        for _ in range(_HALVINGS):
            middle = (low * high) ** 0.5
            self._rescale(middle)
            now = self.agreement()
            if abs(now - wanted) < _CLOSE:
                break
            low, high = (middle, high) if now > wanted else (low, middle)
        return now

    @torch.inference_mode()
    def agreement(self) -> float:
        """Return the mean of Σ min(p, q) over contexts of random tokens."""
        sums = [self._agreement(texts) for texts in self._contexts.tensor_split(_PIECES)]
        return float(torch.cat(sums).mean())

    def _agreement(self, texts: Tensor) -> Tensor:
        p, q = (SAMPLING.distribution(model(texts).logits) for model in (self.target, self.draft))
        return torch.minimum(p, q).sum(-1)

    def _rescale(self, scale: float) -> None:
        for weight in self._upper:
            weight.mul_(scale / self._scale)
        self._scale = scale


def _config(shape: Shape, context: int) -> LlamaConfig | Qwen2Config:
    family = Qwen2Config if shape.qwen else LlamaConfig
    return family(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.feed_forward,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        max_position_embeddings=context,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
