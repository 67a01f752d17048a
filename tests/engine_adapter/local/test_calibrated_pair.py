"""A synthetic pair accepts at the rate that it was dialled to, as the loop itself counts it."""

import pytest
import torch

from benchmarks.calibrated_pair import SAMPLING, SHAPES, CalibratedPair
from engine_adapter.engines.local import DraftVerify, Ending, Fixed, Job, ModelDrafter, generate

BATCH, TOKENS = 32, 48


@pytest.fixture(scope="module")
def tiny() -> CalibratedPair:
    return CalibratedPair(SHAPES["tiny"], context=128)


def kept(pair: CalibratedPair) -> float:
    """Return the share of the draft tokens reached that the loop kept."""
    loop = DraftVerify(
        pair.target, ModelDrafter(pair.draft), Fixed(3), batch=BATCH, capacity=TOKENS + 8
    )
    endings = [Ending(max_tokens=TOKENS, end_tokens=frozenset()) for _ in range(BATCH)]
    jobs = [Job(prompt=(i, 2 * i, 7), ending=one, seed=i) for i, one in enumerate(endings)]
    steps = [step for answer in generate(loop, jobs, SAMPLING) for step in answer.steps]
    reached = sum(min(step.accepted + 1, len(step.draft_ids)) for step in steps)
    return sum(step.accepted for step in steps) / reached


@pytest.mark.parametrize("wanted", [0.9, 0.6, 0.8, 0.7])
def test_measured_acceptance_is_the_dials(tiny: CalibratedPair, wanted: float) -> None:
    """Up and down, on the same weights; within .05 of some 1,400 draft tokens."""
    assert tiny.dial(wanted) == pytest.approx(wanted, abs=0.005)
    assert kept(tiny) == pytest.approx(wanted, abs=0.05)


def test_the_draft_has_no_weights_of_its_own(tiny: CalibratedPair) -> None:
    """It reads the target's, so that a pair needs the memory of the target alone."""
    theirs = {p.data_ptr() for p in tiny.target.parameters()}
    assert {p.data_ptr() for p in tiny.draft.parameters()} <= theirs
    assert len(tiny.draft.base_model.layers) == 2


def test_the_same_seed_is_the_same_pair() -> None:
    """A timing can be repeated."""
    pairs = [CalibratedPair(SHAPES["tiny"], context=64, seed=3) for _ in range(2)]
    assert pairs[0].agreement() == pairs[1].agreement()


def test_shapes_have_the_sizes_that_their_names_say() -> None:
    """Parameters of the real models, counted without memory."""
    sizes = {}
    for name in ("llama-1b", "llama-7b", "llama-13b", "qwen-7b"):
        from transformers import AutoModelForCausalLM

        from benchmarks.calibrated_pair import _config

        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(_config(SHAPES[name], 4096))
        sizes[name] = round(sum(p.numel() for p in model.parameters()) / 1e9, 1)
    assert sizes == {"llama-1b": 1.5, "llama-7b": 6.7, "llama-13b": 13.0, "qwen-7b": 7.6}


@pytest.mark.parametrize("wanted", [0.0, 1.0, 2.0])
def test_an_agreement_that_cannot_be_is_refused(tiny: CalibratedPair, wanted: float) -> None:
    """Never and always are no dials."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        tiny.dial(wanted)
