"""What CUDA graphs capture reads no value: every method's step runs on torch's meta device."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_heads
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

from benchmarks.calibrated_pair import SHAPES, CalibratedPair
from engine_adapter.engines import EngineOpener
from engine_adapter.engines.local import (
    Drafter,
    DraftVerify,
    EarlyExitDrafter,
    Fixed,
    ModelDrafter,
    PromptLookup,
    SamplerChain,
)
from engine_adapter.engines.local.rehearsal import NoHostNumbers, fault, on_meta
from engine_adapter.routes import LocalRoute

SHAPE = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
}  # fmt: skip
FAMILIES = {"llama": (LlamaForCausalLM, LlamaConfig), "qwen3": (Qwen3ForCausalLM, Qwen3Config)}
SAMPLINGS = {
    "greedy": SamplerChain(),
    "sampled": SamplerChain(0.7),
    "top-k and top-p": SamplerChain(0.7, 0.9, 5),
}
METHODS: dict[str, Callable[[Any], Drafter | None]] = {
    "none": lambda _model: None,
    "draft_model": lambda model: ModelDrafter(on_meta(model)),
    "early_exit": lambda _model: EarlyExitDrafter(1),
    "prompt_lookup": lambda model: PromptLookup(torch.tensor([2, 3], device=model.device)),
    "head": tiny_heads.last_token_again,
    "tree": tiny_heads.branching,
}


def target(family: str) -> Any:
    """Return a model of a family in bfloat16 on the meta device."""
    kind, config = FAMILIES[family]
    with torch.device("meta"):
        return kind(config(**SHAPE)).to(torch.bfloat16)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("family", "sampling"), [*(("llama", one) for one in SAMPLINGS), ("qwen3", "top-k and top-p")]
)
def test_no_step_reads_a_value(family: str, method: str, sampling: str) -> None:
    """Drafting, verifying, the moves of the cache and the texts' growth, in two windows."""
    model = target(family)
    for k, batch in ((0, 1), (0, 3)) if method == "none" else ((1, 3), (4, 1), (8, 3)):
        drafter = METHODS[method](model)
        loop = DraftVerify(model, drafter, Fixed(k), batch=batch, capacity=300, end_tokens=(2, 3))
        with torch.inference_mode():
            loop.step(k, SAMPLINGS[sampling])
        with torch.inference_mode(), NoHostNumbers():
            for _ in range(2):
                draft, result, _ = loop.step(k, SAMPLINGS[sampling])
                loop._texts.grew(200)
        assert {draft.tokens.device.type, result.tokens.device.type} == {"meta"}
        assert result.tokens.shape[0] == batch


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", sorted(SHAPES.keys() - {"tiny", "small"}))
def test_no_step_of_a_real_shape_reads_a_value(shape: str, method: str) -> None:
    """The widths, heads and vocabularies of the generation benchmark, in three layers."""
    pair = CalibratedPair(
        SHAPES[shape]._replace(layers=3), context=300, device="meta", dtype=torch.bfloat16
    )
    drafter = METHODS[method](pair.target)
    for k in (0,) if method == "none" else (1, 4, 8):
        loop = DraftVerify(pair.target, drafter, Fixed(k), batch=2, capacity=300)
        with torch.inference_mode():
            loop.step(k, SamplerChain())
        with torch.inference_mode(), NoHostNumbers():
            results = [loop.step(k, sampling)[1] for sampling in SAMPLINGS.values()]
        assert {one.tokens.device.type for one in results} == {"meta"}


class Elsewhere(tiny_heads.HiddenStateHead):
    """A head that mixes in a tensor of the host."""

    def _logits(self, texts: Any) -> torch.Tensor:
        return super()._logits(texts) + torch.zeros(8, SHAPE["vocab_size"])


class Made(tiny_heads.HiddenStateHead):
    """A head that makes a tensor of the host's numbers on the device."""

    def _logits(self, texts: Any) -> torch.Tensor:
        return super()._logits(texts) * torch.tensor([2.0], device=texts.tokens.device)


class Sent(tiny_heads.HiddenStateHead):
    """A head that sends a tensor of the host to the device."""

    def _logits(self, texts: Any) -> torch.Tensor:
        return super()._logits(texts) * torch.ones(1).to(texts.tokens.device)


@pytest.mark.parametrize(
    ("head", "named"),
    [
        (tiny_heads.reading, "item"),
        (lambda model: Elsewhere(tiny_heads.maps(model)), "device"),
        (tiny_heads.DraftModelTree, "meta"),
        (lambda model: tiny_heads.ListingHead(tiny_heads.maps(model)), "copies a list"),
        (lambda model: Made(tiny_heads.maps(model)), "tensor copies a list"),
        (lambda model: Sent(tiny_heads.maps(model)), "another device"),
        (lambda _model: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_head_that_reads_the_device_is_found(head: Callable[[Any], Drafter], named: str) -> None:
    """Beforehand, with its error; one of tensor operations alone has none."""
    model = LlamaForCausalLM(LlamaConfig(**SHAPE)).eval()
    found = fault(model, head, 4)
    assert named in found
    assert fault(model, tiny_heads.last_token_again, 4) is None
    assert fault(model, tiny_heads.branching, 8, batch=2) is None


def test_check_says_so_of_a_head(random_pair: dict[str, Path]) -> None:
    """Its answers are as they are; the advice names the head and the error."""
    told = {}
    for head in ("reading", "last_token_again"):
        route = LocalRoute(
            engine="local",
            model=str(random_pair["target"]),
            method="head",
            head=f"tiny_heads:{head}",
        )

        async def ask(to: LocalRoute = route) -> tuple[str, ...]:
            return (await (await EngineOpener().open(to)).probe()).advice

        told[head] = asyncio.run(ask())
    assert told["last_token_again"] == ()
    (advice,) = told["reading"]
    assert "the head tiny_heads:reading reads values on the host" in advice
    assert "item" in advice
