"""Taking rejected tokens back leaves the caches as if they had never been read."""

from typing import Any

import pytest
import torch
from tiny_models import END, METHODS, PROMPTS, READS, Pair, job, random_model
from torch import Tensor

from engine_adapter.engines.local import DraftVerify, Fixed
from engine_adapter.engines.local.cached_model import CachedModel
from engine_adapter.engines.local.sampling import SamplerChain
from engine_adapter.errors import EngineSetupError

TOKENS = 20
ROOM = max(map(len, PROMPTS)) + TOKENS


def afresh(model: Any, tokens: list[int]) -> Tensor:
    """Return keys and values of these tokens, read once from an empty cache."""
    fresh = CachedModel(model, 1, ROOM)
    with torch.inference_mode():
        ids = torch.tensor([tokens], device=model.device)
        fresh(ids, torch.zeros_like(ids[:, 0]), ROOM)
    return fresh.cache.tensor[:, :, 0, : len(tokens)]


@pytest.mark.parametrize("method", ["draft_model", "early_exit", "tree"])
@pytest.mark.parametrize(
    ("pair", "temperature"),
    [("llama", 0.0), ("llama", 1.0), ("qwen2", 1.0), ("qwen3", 1.0)],
    indirect=["pair"],
)
def test_caches_after_each_step_are_those_of_the_text_read_afresh(
    pair: Pair, temperature: float, method: str
) -> None:
    """After every step of every text, of target and draft; up to the last token, not yet read."""
    drafter = METHODS[method](pair)
    loop = DraftVerify(
        pair.target,
        drafter,
        Fixed(6),
        batch=len(PROMPTS),
        capacity=ROOM,
        end_tokens=(END,),
        captures=method != READS,
    )
    jobs = [job(prompt, TOKENS, seed=i) for i, prompt in enumerate(PROMPTS)]
    rejected = 0
    with torch.inference_mode():
        for step in loop.steps(jobs, SamplerChain(temperature)):
            for one in step.texts:
                rejected += len(one.draft_ids) - one.accepted
                text = [*jobs[one.text].prompt, *jobs[one.text].ending.token_ids]
                if jobs[one.text].ending.reason is not None:
                    continue
                held = loop._target.cache.tensor[:, :, one.text]
                assert_equal(held, afresh(pair.target, text[:-1]))
                if (
                    method == "draft_model"
                ):  # it may lack the last accepted token, and reads it next
                    held = drafter._model.cache.tensor[:, :, one.text]
                    assert_equal(
                        held, afresh(pair.draft, text[:-2]) if text[2:] else held[:, :, :0]
                    )
    assert rejected > 0


def test_a_cache_that_begins_one_slot_late_is_found_out(llama_pair: Pair) -> None:
    """The comparison sees a rejected token's slot: it is no comparison of equal garbage."""
    text = list(PROMPTS[4])
    held = afresh(llama_pair.target, text)
    with pytest.raises(AssertionError):
        assert_equal(held, afresh(llama_pair.target, [*text[:-1], text[-1] + 1]))


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ({"layer_types": ["full_attention", "sliding_attention"] * 2}, "sliding_attention"),
        ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4}}, "dynamic"),
        ({"rope_parameters": None}, "unknown"),
    ],
)
def test_a_model_that_sees_more_than_its_own_past_is_refused(
    changes: dict[str, object], seen: str
) -> None:
    """Windows, and positions scaled by the longest in a pass: rejected tokens would leak."""
    model = random_model("qwen2", seed=1)
    for key, value in changes.items():
        setattr(model.config, key, value)
    with pytest.raises(EngineSetupError, match=f"{seen} attention or positions"):
        CachedModel(model, 1, 16)


def assert_equal(held: Tensor, fresh: Tensor) -> None:
    """Compare up to the sums' order: a pass of one row and one of many add up differently."""
    torch.testing.assert_close(held[:, :, : fresh.shape[2]], fresh, rtol=1e-4, atol=1e-5)
