"""The verify steps seen by the public hooks, compared with the library's private counts."""

from pathlib import Path
from typing import Any

import pytest

from engine_adapter.engines.acceptance_counts import SpeculationCounts, VerifyStep, count
from engine_adapter.engines.model_folder import ModelKey, ModelShelf
from engine_adapter.engines.verify_steps import Emission, drafted_ids, recording


def test_counts_of_known_steps() -> None:
    """Three steps of widths 4, 4 and 2 that kept 2, 0 and 2 tokens; a step without a draft."""
    steps = [VerifyStep(4, 2), VerifyStep(4, 0), VerifyStep(0, 0), VerifyStep(2, 2)]
    assert count(steps) == SpeculationCounts(
        steps=3,
        draft_tokens=10,
        accepted_tokens=4,
        draft_tokens_per_pos=(3, 3, 2, 2),
        accepted_tokens_per_pos=(2, 2, 0, 0),
        acceptance_histogram=(1, 0, 2, 0, 0),
    )


def test_nothing_drafted_is_measured_zero() -> None:
    """No step proposed a token: the sums are 0, the lists empty, and nothing is absent."""
    assert count([VerifyStep(0, 0)]) == SpeculationCounts(0, 0, 0, (), (), ())


@pytest.mark.parametrize(
    ("drafts", "emitted", "step"),
    [
        ((5, 6, 7), (5, 6, 9), VerifyStep(3, 2)),  # the third is the target's own
        ((5, 6, 7), (5, 6, 7, 8), VerifyStep(3, 3)),  # all kept, and a bonus token
        ((5, 0, 7), (5, 0), VerifyStep(3, 2)),  # cut by an end token that was drafted
        ((5, 6), (9,), VerifyStep(2, 0)),
        ((), (9,), VerifyStep(0, 0)),
        (None, (9,), None),
    ],
)
def test_accepted_are_the_leading_drafts_that_the_answer_kept(
    drafts: tuple[int, ...] | None, emitted: tuple[int, ...], step: VerifyStep | None
) -> None:
    """A match after a mismatch is chance, not acceptance; an unknown draft is no step."""
    assert Emission(0.0, emitted, drafts).verify_step == step


def test_a_target_that_does_not_say_what_it_verifies_gives_no_count() -> None:
    """Without `logits_to_keep` the draft is unknown, which is not the same as empty."""
    assert drafted_ids({}) is None
    assert drafted_ids({"logits_to_keep": 1}) == ()


def test_public_hooks_agree_with_the_private_candidate_generator(
    random_pair: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step by step, proposals are equal; acceptance too, but where the end of text cut the step."""
    import torch
    from transformers import GenerationConfig

    shelf = ModelShelf()
    target = shelf.load(ModelKey(str(random_pair["target"]), "cpu", "float32"))
    draft = shelf.load(ModelKey(str(random_pair["draft"]), "cpu", "float32")).model
    draft.generation_config.num_assistant_tokens = 3
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0
    private: list[VerifyStep] = []
    original = target.model._get_candidate_generator

    def spied(*args: Any, **kwargs: Any) -> Any:
        generator = original(*args, **kwargs)
        update = generator.update_candidate_strategy

        def record(input_ids: Any, scores: torch.Tensor, num_matches: int) -> None:
            private.append(VerifyStep(scores.shape[1] - 1, int(num_matches)))
            update(input_ids, scores, num_matches)

        generator.update_candidate_strategy = record
        return generator

    monkeypatch.setattr(target.model, "_get_candidate_generator", spied)
    public: list[Emission] = []
    config = GenerationConfig(max_new_tokens=32, do_sample=False, eos_token_id=0, pad_token_id=1)
    for first in range(4, 19):
        with recording(target.model) as recorder:
            target.model.generate(
                torch.tensor([[2, first, 3]]),
                attention_mask=torch.ones(1, 3, dtype=torch.long),
                generation_config=config,
                streamer=recorder,
                assistant_model=draft,
            )
        public += recorder.emissions
    assert len(public) == len(private) > 100
    for emission, step in zip(public, private, strict=True):
        seen = emission.verify_step
        assert seen.proposed == step.proposed
        cut = len(emission.token_ids) == seen.accepted
        assert seen.accepted == step.accepted + cut
    assert sum(step.accepted for step in private) > 0
