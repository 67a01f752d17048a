"""The demo's rollout files."""

from pathlib import Path

from demo.story import DRAFT, TARGET, WORKLOAD, candidates
from engine_adapter import workload
from engine_adapter.run import rollout_file


def test_three_candidates_differ_in_one_thing_each(tmp_path: Path) -> None:
    """The broken one differs from the good one in its acceptance rule, the thin one in its size."""
    good, broken, thin = (
        rollout_file.read(candidate.write(tmp_path, "http://127.0.0.1:1"))
        for candidate in candidates()
    )
    assert good.candidate.model_copy(update={"relaxed_top_k": 10}) == broken.candidate
    assert good.candidate == thin.candidate
    assert good.baseline == broken.baseline == thin.baseline
    assert [r.load.max_prompts for r in (good, broken, thin)] == [160, 160, 20]
    assert (good.baseline.model, good.candidate.draft_model) == (str(TARGET), str(DRAFT))


def test_pairs_sizes_the_first_two() -> None:
    """If the number of pairs is given, there is no separate candidate for too little evidence."""
    assert [(c.name, c.rollout["load"]["max_prompts"]) for c in candidates(20)] == [
        ("good", 20),
        ("broken", 20),
    ]


def test_any_first_prompts_hold_every_cohort_alike() -> None:
    """The workload interleaves its cohorts, so that 4n prompts are n of each."""
    cohorts = [prompt.cohort for prompt in workload.read(WORKLOAD)]
    for start in range(0, len(cohorts), 4):
        assert sorted(cohorts[start : start + 4]) == ["chat", "code", "rag", "tool_call"]
