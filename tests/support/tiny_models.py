"""Tiny random models of three families, and what transformers itself makes of prompts."""

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from tiny_heads import DraftModelTree
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from engine_adapter.engines.local import (
    Drafter,
    EarlyExitDrafter,
    Ending,
    Job,
    ModelDrafter,
    PromptLookup,
)

DEVICE = os.environ.get("DRAFTGATE_TEST_DEVICE", "cpu")
"""Where the models are: `cuda` runs the steps as CUDA graphs."""
VOCABULARY = 24
END = 0
PROMPTS: tuple[tuple[int, ...], ...] = (
    (5,),
    (3, 4, 5, 6, 7),
    (9, 8, 9, 8, 9),
    (1, 2),
    (20, 4, 11, 20, 4, 11, 20, 4),
    tuple(range(1, 20)),
)
"""Ragged; the first has nothing to be read before its first step."""


class Pair(NamedTuple):
    """A target, and a draft that agrees with it now and then."""

    target: Any
    draft: Any


FAMILIES: dict[str, tuple[type, type]] = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}


def random_model(family: str, *, seed: int, layers: int = 3, spread: float = 0.35) -> Any:
    """Return a model with grouped heads and random weights."""
    config_class, model_class = FAMILIES[family]
    torch.manual_seed(seed)
    config = config_class(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=256,
        bos_token_id=None,
        eos_token_id=END,
        pad_token_id=None,
        initializer_range=spread,
        tie_word_embeddings=False,
    )
    model = model_class(config).eval().to(DEVICE)
    model.generation_config.eos_token_id = END
    model.generation_config.pad_token_id = END
    return model


Making = Callable[[Pair], Drafter]
METHODS: dict[str, Making] = {
    "draft_model": lambda pair: ModelDrafter(pair.draft),
    "prompt_lookup": lambda pair: PromptLookup(torch.tensor([END], device=DEVICE)),  # noqa: ARG005
    "early_exit": lambda pair: EarlyExitDrafter(1),  # noqa: ARG005
    "tree": lambda pair: DraftModelTree(pair.draft),
}
READS = "tree"
"""The method that reads values on the host: no CUDA graph can capture its steps."""


def job(prompt: Sequence[int], max_tokens: int, *, seed: int = 0, end: int = END) -> Job:
    ending = Ending(max_tokens=max_tokens, end_tokens=frozenset({end}))
    return Job(prompt=tuple(prompt), ending=ending, seed=seed)


def their_greedy(model: Any, prompt: Sequence[int], max_tokens: int, **more: Any) -> list[int]:
    """Return transformers' own greedy answer."""
    ids = torch.tensor([list(prompt)], device=model.device)
    made = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=max_tokens,
        do_sample=False,
        **more,
    )
    found: list[int] = made[0, len(prompt) :].tolist()
    return found
