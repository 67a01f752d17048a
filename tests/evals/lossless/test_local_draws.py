"""The audit of real runs of `engine: local` by their seeds, and what it cannot judge."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from recorded_runs import recorded
from transformers import AutoModelForCausalLM, AutoTokenizer

from collector.contract import Arm, Generation
from engine_adapter.routes import LocalRoute
from engine_adapter.run.rollout_file import Sampling
from engine_adapter.run.schedule import Turn
from engine_adapter.workload import Prompt
from evals.lossless.local_draws import UNDRAFTED, UNNAMED
from evals.lossless.rescoring import TransformersRescorer
from evals.lossless.sampled_answers import ArmAudit, AuditResult, AuditTally
from evals.lossless.sampled_judgement import judge

Pair = dict[str, Path]
ANSWERS = 12
TEXTS = ("the order was shipped on monday", "will arrive soon", "by north way and by north way")


def answered(pair: Pair, count: int = ANSWERS, **candidate: Any) -> dict[Arm, list[Generation]]:
    """Return so many sampled answers of each arm; the candidate's route has these keys."""
    plain = {"engine": "local", "model": str(pair["target"])}
    drafted = {"method": "draft_model", "draft_model": str(pair["draft"])}
    drafted = drafted if "method" not in candidate else {}
    routes = {
        Arm.BASELINE: LocalRoute.model_validate(plain),
        Arm.CANDIDATE: LocalRoute.model_validate(plain | drafted | candidate),
    }
    turns = [
        Turn(Prompt(id=f"p{i}", cohort="c", prompt=TEXTS[i % 3], max_tokens=32), 0, arm)
        for i in range(count)
        for arm in Arm
    ]
    made = recorded(routes, turns, sampling=Sampling(temperature=1.0, max_tokens=32))
    return {arm: [one for one in made if one.arm is arm] for arm in Arm}


def audit_of(pair: Pair, *, drafted: bool = True) -> Callable[[Sequence[Generation]], AuditResult]:
    """Return a function that audits an arm's answers."""
    target = TransformersRescorer(pair["target"])
    draft = target.draft(pair["draft"]) if drafted else None

    def audited(answers: Sequence[Generation]) -> AuditResult:
        audit, tally = ArmAudit(target, 0.005, draft=draft), AuditTally()
        for one in answers:
            tally.add(audit.take(one))
        return tally.audited()

    return audited


def test_both_arms_answers_are_their_seeds(random_pair: Pair) -> None:
    """Every token, with drafts and without."""
    made = answered(random_pair)
    for arm, of_arm in made.items():
        found = audit_of(random_pair)(of_arm)
        assert (found.answers, found.unseeded) == (ANSWERS, {})
        assert found.seeded.tokens == found.law.tokens > 0
        assert found.seeded.log_e == 0, arm


@pytest.mark.parametrize(
    ("candidate", "named", "why"),
    [
        ({"adaptive": True}, None, UNNAMED),
        ({"k_by_batch": {1: 3, 2: 1}}, None, UNNAMED),
        ({"dtype": "bfloat16"}, "bfloat16 k=4", "computed or rescored in bfloat16 are not"),
        ({"method": "prompt_lookup"}, "float32 k=4", "that no draft model"),
    ],
)
def test_what_the_seed_does_not_determine_is_not_judged(
    random_pair: Pair, candidate: dict[str, Any], named: str | None, why: str
) -> None:
    """The finding gives the reason, and few tokens are no pass."""
    made = answered(random_pair, **candidate)
    assert {one.seeded_draws for one in made[Arm.CANDIDATE]} == {named}
    audited = audit_of(random_pair)
    found = judge(audited(made[Arm.CANDIDATE]), audited(made[Arm.BASELINE]))
    assert found.outcome == "inconclusive"
    assert why in found.words
    assert "not judged by their seeds" in found.words


def test_without_the_draft_model_only_the_baseline_is_judged(random_pair: Pair) -> None:
    """The candidate's tokens hang on what was drafted."""
    made = answered(random_pair)
    audited = audit_of(random_pair, drafted=False)
    assert audited(made[Arm.BASELINE]).seeded.tokens > 0
    found = audited(made[Arm.CANDIDATE])
    assert (found.seeded.tokens, found.unseeded) == (0, {UNDRAFTED: ANSWERS})


@pytest.mark.parametrize(
    "named", [None, "", "float32", "float32 k=", "float32 k=-1", "float32 k=1e3", " k=4"]
)
def test_evidence_that_names_no_draws_is_not_judged(random_pair: Pair, named: str | None) -> None:
    """Nor guessed."""
    made = [replace(one, seeded_draws=named) for one in answered(random_pair)[Arm.CANDIDATE]]
    found = audit_of(random_pair)(made)
    assert (found.seeded.tokens, found.unseeded) == (0, {UNNAMED: ANSWERS})


def test_evidence_that_names_other_draws_is_a_fail(random_pair: Pair) -> None:
    """Tokens that are not the seed's never pass."""
    made = answered(random_pair)
    lies = [replace(one, seed=(one.seed or 0) + 1) for one in made[Arm.CANDIDATE]]
    audited = audit_of(random_pair)
    found = judge(audited(lies), audited(made[Arm.BASELINE]))
    assert found.outcome == "fail", found.words
    assert "not those that the seeds give" in found.words


BFLOAT16 = "computed or rescored in bfloat16"


def claiming(dtype: str, answers: Sequence[Generation]) -> list[Generation]:
    """Return the answers with evidence that names this dtype."""
    ks = [(one.seeded_draws or "").partition(" ")[2] for one in answers]
    return [replace(one, seeded_draws=f"{dtype} {k}") for one, k in zip(answers, ks, strict=True)]


def test_bfloat16_that_claims_float32_is_an_alarm_that_names_the_evidence(
    random_pair: Pair,
) -> None:
    """Rounding moves tokens off their draws, which a fault of the sampler does as well."""
    made = answered(random_pair, count=45, dtype="bfloat16")
    audited = audit_of(random_pair)
    lies = audited(claiming("float32", made[Arm.CANDIDATE]))
    assert (lies.law.alarmed, lies.unseeded) == (False, {})
    found = judge(lies, audited(made[Arm.BASELINE]))
    assert found.outcome == "fail", found.words
    assert "(or the evidence names another seed, dtype or k)" in found.words


def test_float32_that_claims_bfloat16_is_audited_by_its_distribution(random_pair: Pair) -> None:
    """The finding says why the seeds do not judge."""
    made = answered(random_pair)
    audited = audit_of(random_pair)
    lies = audited(claiming("bfloat16", made[Arm.CANDIDATE]))
    assert (lies.seeded.tokens, lies.unseeded) == (0, {BFLOAT16: ANSWERS})
    assert lies.law.tokens == sum(one.output_tokens or 0 for one in made[Arm.CANDIDATE])
    found = judge(lies, audited(made[Arm.BASELINE]))
    assert f"{ANSWERS} answers {BFLOAT16} are not judged by their seeds" in found.words


@pytest.mark.parametrize("rounded", ["target", "draft"])
def test_a_rescorer_in_bfloat16_does_not_judge_by_seeds(
    random_pair: Pair, tmp_path: Path, rounded: str
) -> None:
    """Whatever the evidence claims: either model's files give the dtype."""
    folder = tmp_path / rounded
    model = AutoModelForCausalLM.from_pretrained(random_pair[rounded], dtype=torch.bfloat16)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(random_pair[rounded]).save_pretrained(folder)
    found = audit_of(random_pair | {rounded: folder})(answered(random_pair)[Arm.CANDIDATE])
    assert (found.seeded.tokens, found.unseeded) == (0, {BFLOAT16: ANSWERS})
