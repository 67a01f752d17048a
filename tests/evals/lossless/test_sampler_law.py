"""The distribution that a sampler's steps give, in their order."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from collector.contract import not_modelled, read_sampler, write_sampler
from evals.lossless.sampler_law import law

LOGITS = np.log(np.array([[0.5, 0.3, 0.15, 0.05]]))
WARPERS = {
    "temperature": TemperatureLogitsWarper,
    "top_k": lambda value: TopKLogitsWarper(int(value)),
    "top_p": TopPLogitsWarper,
    "min_p": MinPLogitsWarper,
}


@pytest.mark.parametrize(
    ("sampler", "wanted"),
    [
        ("temperature=1", [0.5, 0.3, 0.15, 0.05]),
        ("top_k=2", [0.625, 0.375, 0, 0]),
        ("top_k=9", [0.5, 0.3, 0.15, 0.05]),
        ("top_p=0.6", [0.625, 0.375, 0, 0]),
        ("temperature=0.5 top_p=0.5", [1, 0, 0, 0]),
        ("top_p=0.5 temperature=0.5", [1, 0, 0, 0]),
        ("top_p=0.7 temperature=0.5", [25 / 34, 9 / 34, 0, 0]),
        ("temperature=0.5 top_p=0.7", [25 / 34, 9 / 34, 0, 0]),
        ("temperature=2 top_p=0.6", [0.5635, 0.4365, 0, 0]),
        ("min_p=0.4", [0.625, 0.375, 0, 0]),
        ("min_p=0.4 temperature=0.5", [25 / 34, 9 / 34, 0, 0]),
        ("temperature=0.5 min_p=0.4", [1, 0, 0, 0]),
    ],
)
def test_steps_apply_in_their_order(sampler: str, wanted: list[float]) -> None:
    """What comes before temperature sees the model's own probabilities."""
    assert law(LOGITS, read_sampler(sampler))[0].tolist() == pytest.approx(wanted, abs=1e-4)


@given(
    logits=st.lists(st.floats(-8, 8, width=32), min_size=2, max_size=12, unique=True),
    steps=st.permutations(
        [("temperature", 0.7), ("top_k", 3.0), ("top_p", 0.85), ("min_p", 0.1)]
    ).flatmap(lambda steps: st.integers(0, 4).map(lambda n: tuple(steps[:n]))),
)
def test_the_law_is_transformers_own(
    logits: list[float], steps: tuple[tuple[str, float], ...]
) -> None:
    """Each order of steps gives what transformers' processors give in that order."""
    scores = torch.tensor([logits], dtype=torch.float64)
    for name, value in steps:
        scores = WARPERS[name](value)(torch.zeros((1, 1), dtype=torch.long), scores)
    wanted = torch.softmax(scores, -1).numpy()
    np.testing.assert_allclose(law(np.array([logits]), steps), wanted, atol=1e-6)


def test_each_modelled_step_is_computed() -> None:
    """An audit computes what counts as modelled, and nothing else."""
    penalised = (*((name, 0.5) for name in WARPERS), ("repeat_penalty", 1.1))
    assert not_modelled(penalised) == ["repeat_penalty"]
    law(LOGITS, penalised[:-1])
    with pytest.raises(KeyError):
        law(LOGITS, penalised)


def test_steps_as_text() -> None:
    """Written steps are read again; no steps give no text."""
    steps = (("top_k", 40.0), ("top_p", 0.95), ("temperature", 0.123456789))
    assert write_sampler(steps) == "top_k=40 top_p=0.95 temperature=0.123456789"
    assert read_sampler("top_k=40 top_p=0.95 temperature=0.123456789") == steps
    assert write_sampler(()) is None
    with pytest.raises(ValueError, match="could not convert"):
        read_sampler("greedy")
