"""The gate judges a run that ends when it is decided at the looks that it declared."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from collector.columns import Table
from collector.contract import Outcome, Reason
from evals import policy as policies
from evals.errors import EvidenceError
from evals.evidence.columns import Evidence
from evals.evidence.pairs_table import from_table
from evals.gate import decide
from evals.gate.release import judge_cells
from evals.policy import Policy
from evals.report.terminal import print_verdict
from evals.stats.sequential import spent_levels
from evals.until_decided import Design, next_looks
from tests.evals.conftest import answered, make_table

LOOKS = (60, 120, 180, 240)
COHORTS = ("chat", "code")
POLICY = policies.parse(
    """
version: 1
name: tasks
validity: {speculation: optional}
prove:
  - {metric: task_completion, stat: diff, min: -0.03, scope: pooled}
  - {metric: task_completion, stat: diff, min: -0.06, scope: cohort}
guard:
  - {metric: task_completion, stat: diff, min: -0.02, scope: cohort}
""",
    "tasks.yaml",
)

Row = Mapping[str, Any]


def rows_of(
    cohort: str, pairs: int, *, lost: float = 0.0, seed: int = 0, looks: Sequence[int] = LOOKS
) -> list[Row]:
    """Return the first pairs of a cohort; the candidate loses a share of the baseline's tasks."""
    rng = np.random.default_rng([seed, COHORTS.index(cohort)])
    rows = []
    for i in range(pairs):
        done = rng.random() < 0.9
        declared = {
            "look": 1 + sum(i >= size for size in looks),
            "looks": " ".join(map(str, looks)),
            "workload": '{"chat": 240, "code": 240}',
        }
        keeps = done and rng.random() >= lost
        rows.append(
            {
                "prompt_id": f"{cohort}-{i:04}",
                "cohort": cohort,
                "baseline": answered(score_task_completion=float(done), **declared),
                "candidate": answered(score_task_completion=float(keeps), **declared),
            }
        )
    return rows


def evidence_of(chat: int, code: int, **options: Any) -> Evidence:
    """Return evidence with as many pairs of the two cohorts."""
    return from_table(make_table(rows_of("chat", chat, **options) + rows_of("code", code)))


def outcomes(evidence: Evidence, policy: Policy = POLICY) -> dict[tuple[Any, ...], Outcome]:
    """Return the outcome of each cell."""
    return {(f.cohort, f.role, f.margin): f.outcome for f in judge_cells(evidence, policy)}


def test_a_look_has_its_own_level() -> None:
    """A verdict after the first of four looks holds at the level that this look spends."""
    verdict = decide(evidence_of(60, 60), POLICY, rollout="r")
    level = spent_levels((25, 50, 75, 100), 0.05, 1.5)[0]
    assert {(f.look, f.confidence) for f in verdict.findings} == {(1, 1 - level)}
    assert level == pytest.approx(0.05 * 0.25**1.5)
    assert [(one.cohort, one.pairs, one.taken) for one in verdict.looks] == [
        (None, (120, 240, 360, 480), 1),
        ("chat", LOOKS, 1),
        ("code", LOOKS, 1),
    ]
    assert "4 looks that were declared before the first pair" in verdict.assumption
    assert not any("that the workload has" in words for words in verdict.not_judged)


def test_a_printed_verdict_names_the_looks() -> None:
    """How far each scope is, what decided it, and that limits have their look's confidence."""
    console = Console(record=True, width=200, file=io.StringIO())
    print_verdict(console, decide(evidence_of(240, 180), POLICY, rollout="r"))
    text = " ".join(console.export_text().split())
    assert "all cohorts: decided at look 2; look 3 of 4 is reached, with 360 of 480 pairs" in text
    assert "chat: decided at look 2; look 4 of 4 is reached, with 240 of 240 pairs" in text
    assert "limits one-sided, each at its look's confidence" in text


def test_evidence_that_passes_once_is_inconclusive_at_an_early_look() -> None:
    """What passes at level .05 with a single look need not pass at the first of several."""
    evidence = evidence_of(60, 60)
    once = from_table(_without_looks(rows_of("chat", 60) + rows_of("code", 60)))
    cell = ("chat", "prove", -0.06)
    assert outcomes(once)[cell] is Outcome.PASS
    assert outcomes(evidence)[cell] is Outcome.INCONCLUSIVE
    assert outcomes(evidence_of(240, 240))[cell] is Outcome.PASS


def _without_looks(rows: Sequence[Row]) -> Table:
    plain = {"look": None, "looks": None, "workload": None}
    return make_table(
        [{**row, **{a: row[a] | plain for a in ("baseline", "candidate")}} for row in rows]
    )


def test_pairs_after_the_last_complete_look_do_not_count() -> None:
    """The end of a run between two looks is no look."""
    whole, more = evidence_of(120, 120), evidence_of(150, 179, lost=0.0)
    assert _numbers(whole) == _numbers(more)


def _numbers(evidence: Evidence) -> list[tuple[Any, ...]]:
    return [(f.outcome, f.n, f.lower, f.p_fail, f.look) for f in judge_cells(evidence, POLICY)]


def test_the_pool_keeps_the_workloads_mix() -> None:
    """A cohort that went ahead is judged at its own looks, and in the pool only as far as all."""
    found = {f.cohort: f for f in judge_cells(evidence_of(240, 60), POLICY) if f.role == "prove"}
    assert (found[None].n, found[None].look) == (120, 1)
    assert (found["code"].n, found["code"].look) == (60, 1)
    assert found["chat"].n > 60


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("lost", [0.0, 0.03, 0.1, 0.3])
def test_a_decision_stays_whatever_follows(seed: int, lost: float) -> None:
    """More looks, of this cohort or of others, change no cell that is decided."""
    before = outcomes(evidence_of(60, 60, lost=lost, seed=seed))
    for chat, code in ((120, 60), (120, 120), (240, 120), (240, 240)):
        after = outcomes(evidence_of(chat, code, lost=lost, seed=seed))
        decided = {c: o for c, o in before.items() if o is not Outcome.INCONCLUSIVE}
        assert decided.items() <= after.items()
        before = after


def test_a_cohort_without_its_first_look_is_named() -> None:
    """Before the first look nothing is judged, and the verdict says when it comes."""
    verdict = decide(evidence_of(59, 60), POLICY, rollout="r")
    found = {f.cohort: f for f in verdict.findings if f.role == "prove"}
    assert (found["chat"].reason, found["chat"].n, found["chat"].n_needed) == (Reason.TOO_FEW, 0, 1)
    assert "the first look is at 60 pairs" in found["chat"].message
    assert found["code"].look == 1
    assert found[None].look is None


def test_an_arm_that_never_answered_completes_no_look() -> None:
    """A pair counts once both sides arrived."""
    rows = rows_of("chat", 60) + rows_of("code", 60)
    rows[7] = {**rows[7], "candidate": None}
    assert {f.look for f in judge_cells(from_table(make_table(rows)), POLICY)} == {None, 1}


@pytest.mark.parametrize("looks", ["", "60 x", "80 40", "-1 40", "9" * 5000])
def test_unusable_looks_are_refused(looks: str) -> None:
    """Counts that are no counts, or shrink, are no looks."""
    rows = [_with(row, looks=looks) for row in rows_of("chat", 5)]
    with pytest.raises(EvidenceError, match=r"draftgate\.looks: wanted growing counts"):
        from_table(make_table(rows))


def _with(row: Row, **fields: Any) -> Row:
    return {**row, **{arm: row[arm] | fields for arm in ("baseline", "candidate")}}


def test_two_runs_of_one_name_are_refused() -> None:
    """Two sets of declared looks have no joint level."""
    rows = rows_of("chat", 60)
    rows[3] = _with(rows[3], looks="1 2 3 4")
    with pytest.raises(EvidenceError, match="two runs with different declared looks"):
        from_table(make_table(rows))


def test_pairs_outside_every_look_do_not_count() -> None:
    """Pairs that a run without looks added later are left out."""
    rows = rows_of("chat", 60) + rows_of("code", 60)
    extra = [_with(row, look=None, looks=None) for row in rows_of("chat", 100)[60:]]
    evidence = from_table(make_table([*rows, *extra]))
    assert _numbers(evidence) == _numbers(from_table(make_table(rows)))


def test_small_cohorts_skip_looks_without_new_pairs() -> None:
    """Two looks of the same pairs are one, whose level is that of the later share."""
    looks = (1, 1, 2, 2)
    rows = rows_of("chat", 240) + rows_of("code", 2, looks=looks)
    found = {f.cohort: f for f in judge_cells(from_table(make_table(rows)), POLICY)}
    assert (found["code"].look, found["code"].n) == (3, 2)
    assert (found[None].look, found[None].n) == (3, 182)


# --- which prompts come next


def following(evidence: Evidence) -> tuple[Outcome, Mapping[str, int]]:
    """Return the state and the looks to complete next."""
    found = next_looks(evidence, POLICY, Design(len(LOOKS)))
    return found.outcome, found.cohorts


def test_all_cohorts_go_on_while_the_pool_is_undecided() -> None:
    """The pooled cell needs every cohort."""
    assert following(evidence_of(60, 60)) == (Outcome.INCONCLUSIVE, {"chat": 2, "code": 2})


def test_a_cohort_that_is_behind_catches_up() -> None:
    """The pool waits for it."""
    assert following(evidence_of(120, 60)) == (Outcome.INCONCLUSIVE, {"code": 2})


def test_the_cohort_suspected_of_harm_goes_ahead() -> None:
    """Its own looks decide it, so that the others' prompts are saved."""
    evidence = evidence_of(60, 60, lost=0.12)
    assert following(evidence) == (Outcome.INCONCLUSIVE, {"chat": 2})


def test_a_run_ends_at_proven_harm() -> None:
    """A failed guard is the end."""
    assert following(evidence_of(120, 60, lost=0.4)) == (Outcome.FAIL, {})


def test_a_run_ends_when_all_is_proved() -> None:
    """Every cell that must pass has."""
    assert following(evidence_of(180, 180)) == (Outcome.PASS, {})


def test_a_run_ends_when_the_looks_are_used_up() -> None:
    """It is undecided, and says what was waiting."""
    pooled = replace(POLICY, rules=tuple(r for r in POLICY.rules if r.scope == "pooled"))
    found = next_looks(evidence_of(240, 240, lost=0.1), pooled, Design(len(LOOKS)))
    assert (found.outcome, found.cohorts) == (Outcome.INCONCLUSIVE, {})
    assert {f.cohort for f in found.waiting} == {None}


def test_a_run_ends_when_no_further_pair_can_decide_it() -> None:
    """Scores that are never given are not given to later pairs either."""
    rows = [
        _with(row, score_task_completion=None, carries="reference")
        for cohort in COHORTS
        for row in rows_of(cohort, 60)
    ]
    found = next_looks(from_table(make_table(rows)), POLICY, Design(len(LOOKS)))
    assert (found.outcome, found.cohorts, found.waiting) == (Outcome.INCONCLUSIVE, {}, ())
