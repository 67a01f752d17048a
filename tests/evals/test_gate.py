"""The gate's truth table, row by row: what passes, what fails, and what nothing can be said of."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from collector.contract import Finding, Outcome, Reason, Role, Verdict, from_document, to_document
from evals import policy
from evals.errors import PolicyError
from evals.evidence.columns import Evidence
from evals.gate import decide, hypothesis, plan
from evals.policy import Policy

EvidenceOf = Callable[[Sequence[Any]], Evidence]
SideOf = Callable[..., dict[str, Any]]

FASTER = "{metric: e2e, stat: geomean_ratio, max: 1.00, scope: pooled}"
TAIL = "{metric: e2e, stat: p95_ratio, max: 1.25, scope: pooled}"
TASKS = "{metric: task_completion, stat: diff, min: -0.10, scope: pooled}"
LOST = "{metric: failures, stat: diff, max: 0.05, scope: pooled}"


def a_policy(*prove: str, guard: Sequence[str] = (), report: Sequence[str] = ()) -> Policy:
    lines = ["version: 1", "name: test"]
    for role, rules in (("prove", prove), ("guard", guard), ("report", report)):
        lines += [f"{role}:", *(f"  - {rule}" for rule in rules)] if rules else []
    return policy.parse("\n".join(lines), "test.yaml")


class Rollout:
    """Pairs of a candidate that is 0.7 times as slow as its baseline, and as good."""

    def __init__(self, side: SideOf, n: int, cohorts: Sequence[str | None] = ("chat",)) -> None:
        rng = np.random.default_rng(11)
        self.rows: list[dict[str, Any]] = []
        for i in range(n):
            seconds, factor = rng.lognormal(0, 0.3), 0.7 * rng.lognormal(0, 0.05)
            self.rows.append(
                {
                    "prompt_id": f"p{i:04}",
                    "cohort": cohorts[i % len(cohorts)],
                    "baseline": side(
                        e2e_s=seconds, tpot_s=(seconds - 0.1) / 19, score_task_completion=1.0
                    ),
                    "candidate": side(
                        e2e_s=seconds * factor,
                        tpot_s=(seconds * factor - 0.1) / 19,
                        score_task_completion=1.0,
                    ),
                }
            )

    def change(self, which: slice, arm: str, **fields: Any) -> "Rollout":
        """Replace columns of one arm in some pairs."""
        for row in self.rows[which]:
            row[arm] = row[arm] | fields
        return self

    def drop(self, which: slice, arm: str) -> "Rollout":
        """Take one arm's side away from some pairs."""
        for row in self.rows[which]:
            row[arm] = None
        return self


FAILED = {"error_type": "timeout", "score_task_completion": None}


@pytest.fixture
def rollout_of(side: SideOf) -> Callable[..., Rollout]:
    return lambda n=160, cohorts=("chat",): Rollout(side, n, cohorts)


def only(verdict: Verdict) -> Finding:
    (finding,) = verdict.findings
    return finding


def judged(evidence: Evidence, *prove: str, **roles: Sequence[str]) -> Verdict:
    return decide(evidence, a_policy(*prove, **roles), rollout="r")


@pytest.fixture
def judge(evidence_of: EvidenceOf) -> Callable[..., Verdict]:
    return lambda rollout, *prove, **roles: judged(evidence_of(rollout.rows), *prove, **roles)


# --- one cell


@pytest.mark.parametrize("rule", [FASTER, TAIL, TASKS, LOST])
def test_a_good_candidate_passes(rollout_of, judge, rule) -> None:
    """A faster candidate that loses nothing passes each kind of cell."""
    verdict = judge(rollout_of(), rule)
    assert verdict.outcome is Outcome.PASS
    assert only(verdict).reason is None
    assert only(verdict).n_needed is None
    assert only(verdict).because is None
    assert verdict.summary == "r passes on 160 pairs: all 1 required cells are within margin."


def slower(rollout: Rollout) -> Rollout:
    for row in rollout.rows:
        row["candidate"] = row["candidate"] | {"e2e_s": row["candidate"]["e2e_s"] * 2.5}
    return rollout


def worse(rollout: Rollout) -> Rollout:
    return rollout.change(slice(0, 60), "candidate", score_task_completion=0.0)


def losing(rollout: Rollout) -> Rollout:
    return rollout.change(slice(0, 60), "candidate", **FAILED)


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        (FASTER, slower),
        (TAIL, slower),
        (TAIL, losing),
        (TASKS, worse),
        (TASKS, losing),
        (LOST, losing),
    ],
)
def test_a_bad_candidate_fails(rollout_of, judge, rule, spoil) -> None:
    """A candidate beyond the margin fails; a failed answer is infinitely slow and worth 0."""
    verdict = judge(spoil(rollout_of()), rule, guard=[LOST] if rule != LOST else [])
    finding = verdict.findings[0]
    assert (verdict.outcome, finding.outcome) == (Outcome.FAIL, Outcome.FAIL)
    assert finding.message in verdict.reasons
    assert finding.p_fail is not None
    assert finding.p_fail < 0.0011  # by Student's t of the batches; .00102 for the p95 of 160


def test_few_values_have_no_p99(rollout_of, judge) -> None:
    """Of fewer than 100 it would be about the greatest, so that not even an estimate is given."""
    rule = "{metric: e2e, stat: p99_ratio, max: 1.25, scope: pooled}"
    few, more = (only(judge(rollout_of(n), rule)) for n in (99, 100))
    assert (few.estimate, few.n, few.reason, few.n_needed) == (None, 99, Reason.TOO_FEW, 200)
    assert few.message == (
        "p99 end-to-end latency, pooled: margin ≤ 1.25: inconclusive: needs 200 more pairs "
        "(at least 299 in all)"
    )
    assert more.estimate is not None
    assert "(no limits, 100 pairs)" in more.message


def test_straddling_limits_name_the_pairs_still_needed(rollout_of, judge) -> None:
    """Between the limits nothing is decided, and the message says what would settle it."""
    rollout = rollout_of().change(slice(0, 12), "candidate", score_task_completion=0.0)
    finding = only(judge(rollout, TASKS))
    assert (finding.outcome, finding.reason) == (Outcome.INCONCLUSIVE, Reason.TOO_FEW)
    assert finding.n_needed is not None
    assert finding.message == (
        "share of completed tasks, pooled: candidate − baseline −7.5 pp (−11.7 pp to "
        "−4.7 pp, 160 pairs), margin ≥ −10.0 pp: inconclusive: the limits are too wide for "
        f"the margin; needs about {finding.n_needed:,} more pairs"
    )
    assert finding.because is not None
    assert finding.message.endswith(f": inconclusive: {finding.because}")


def test_the_pairs_still_needed_do_settle_it(rollout_of, judge) -> None:
    """With as many more pairs of the same kind the cell passes; with a fifth of them it does not.

    They are planned for a chance of .8, and for an effect that may be smaller than what was seen.
    """

    def at(n: int) -> Finding:
        wrong = slice(0, round(n * 0.075))
        rollout = rollout_of(n).change(wrong, "candidate", score_task_completion=0.0)
        return only(judge(rollout, TASKS))

    needed = at(160).n_needed
    total = -(-(160 + needed) // 40) * 40
    assert at(total).outcome is Outcome.PASS
    assert at(160 + -(-needed // 200) * 40).outcome is Outcome.INCONCLUSIVE


# --- missing evidence is never a pass


def test_no_pairs(evidence_of) -> None:
    """An empty rollout proves nothing."""
    verdict = judged(evidence_of([]), FASTER, TASKS, LOST)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert {f.reason for f in verdict.findings} == {Reason.MISSING}
    assert verdict.findings[0].message == (
        "geometric-mean end-to-end latency, pooled: margin ≤ 1.00: inconclusive: "
        "the rollout has no pairs"
    )
    assert (verdict.pairs, verdict.findings[0].n_needed) == (0, 30)


@pytest.mark.parametrize("arm", ["baseline", "candidate"])
def test_one_arm_only(rollout_of, judge, arm) -> None:
    """Without the other arm nothing is compared."""
    verdict = judge(rollout_of().drop(slice(None), arm), FASTER, TAIL, TASKS, LOST)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert {(f.reason, f.estimate) for f in verdict.findings} == {(Reason.MISSING, None)}
    assert verdict.incomplete_pairs == 160


def test_no_scores(rollout_of, judge) -> None:
    """A metric that nobody scored is inconclusive, pooled and where cohorts were to be found."""
    rollout = rollout_of()
    for arm in ("baseline", "candidate"):
        rollout.change(slice(None), arm, score_task_completion=None)
    by_cohort = TASKS.replace("pooled", "cohort")
    verdict = judge(rollout, TASKS, by_cohort)
    assert [(f.cohort, f.reason, f.n) for f in verdict.findings] == [
        (None, Reason.MISSING, 0),
        (None, Reason.MISSING, 0),
    ]
    assert verdict.findings[0].message.endswith(
        "no pair has a score on both sides; run `draftgate evaluate` first"
    )


@pytest.mark.parametrize(
    ("passes", "outcome"), [(0, Outcome.INCONCLUSIVE), (16, Outcome.INCONCLUSIVE), (17, None)]
)
def test_a_baseline_with_nothing_to_lose(rollout_of, judge, passes, outcome) -> None:
    """Where even a candidate that never passes is within the margin, nothing is proved of any."""
    rollout = rollout_of()
    rollout.change(slice(passes, None), "baseline", score_task_completion=0.0)
    finding = only(judge(rollout, TASKS))
    if outcome is None:
        assert finding.outcome is Outcome.PASS
        return
    assert (finding.outcome, finding.reason) == (outcome, Reason.MISSING)
    assert finding.message.endswith(
        f"inconclusive: the baseline passes in {passes} of 160 pairs, so that a candidate without "
        "any success would be within the margin; mend references, evaluator or `pass_at`, or "
        "narrow the margin"
    )


def test_a_baseline_whose_scores_are_all_nought(rollout_of, judge) -> None:
    """A mean of scores has nothing to lose either."""
    rollout = rollout_of()
    for arm in ("baseline", "candidate"):
        rollout.change(slice(None), arm, score_groundedness=0.0)
    rule = "{metric: groundedness, stat: mean_diff, min: -0.05, scope: pooled}"
    finding = only(judge(rollout, rule))
    assert (finding.outcome, finding.reason) == (Outcome.INCONCLUSIVE, Reason.MISSING)
    assert "the baseline has a mean score of 0.000" in finding.message


def test_a_listed_cohort_that_is_not_there(rollout_of, judge) -> None:
    """A cohort that the policy names and nobody ran is missing, not skipped."""
    rule = TASKS.replace("pooled", "cohort, cohorts: [chat, rag]")
    verdict = judge(rollout_of(), rule)
    assert [(f.cohort, f.outcome, f.reason) for f in verdict.findings] == [
        ("chat", Outcome.PASS, None),
        ("rag", Outcome.INCONCLUSIVE, Reason.MISSING),
    ]
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_a_metric_asks_only_the_cohorts_that_it_applies_to(rollout_of, judge) -> None:
    """Without a list, a score's cells are the cohorts whose pairs carry what it needs.

    A cohort whose pairs failed, or were never scored, is none the less asked; one that carries
    nothing is not.
    """
    rollout = rollout_of(240, ("chat", "code", "rag", "smalltalk"))
    for row in rollout.rows:
        carries = "" if row["cohort"] == "smalltalk" else "reference context"
        for arm in ("baseline", "candidate"):
            row[arm] = row[arm] | {"carries": carries}
            if row["cohort"] == "smalltalk":
                row[arm] = row[arm] | {"score_task_completion": None}
    for row in rollout.rows:
        if row["cohort"] == "code":
            for arm in ("baseline", "candidate"):
                row[arm] = row[arm] | {"score_task_completion": None}
        if row["cohort"] == "rag":
            for arm in ("baseline", "candidate"):
                row[arm] = row[arm] | FAILED
    verdict = judge(rollout, TASKS.replace("pooled", "cohort"))
    assert [(f.cohort, f.outcome, f.reason) for f in verdict.findings] == [
        ("chat", Outcome.PASS, None),
        ("code", Outcome.INCONCLUSIVE, Reason.MISSING),
        ("rag", Outcome.INCONCLUSIVE, Reason.MISSING),
    ]


def test_a_cohort_of_which_nobody_knows_whether_a_metric_applies(rollout_of, judge) -> None:
    """Without a record of what prompts carry, a cohort without any score is not passed over."""
    rollout = rollout_of(160, ("chat", "code"))
    for row in rollout.rows:
        if row["cohort"] == "code":
            for arm in ("baseline", "candidate"):
                row[arm] = row[arm] | {"score_task_completion": None}
    chat, code = judge(rollout, TASKS.replace("pooled", "cohort")).findings
    assert (chat.outcome, code.outcome) == (Outcome.PASS, Outcome.INCONCLUSIVE)
    assert "whether task completion applies is not recorded" in code.message
    listed = TASKS.replace("pooled", "cohort, cohorts: [chat]")
    assert judge(rollout, listed).outcome is Outcome.PASS


def test_all_errors(rollout_of, judge) -> None:
    """Where every answer of both arms failed there is nothing to compare but the failures."""
    rollout = rollout_of()
    for arm in ("baseline", "candidate"):
        rollout.change(slice(None), arm, **FAILED)
    verdict = judge(rollout, FASTER, TAIL, TASKS, LOST)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert [f.outcome for f in verdict.findings] == [Outcome.INCONCLUSIVE] * 3 + [Outcome.PASS]
    assert verdict.failed_pairs == 160
    assert from_document(Verdict, to_document(verdict)) == verdict


def test_a_candidate_that_always_fails(rollout_of, judge) -> None:
    """A candidate without a single answer fails on quality, tail and failures."""
    verdict = judge(rollout_of().change(slice(None), "candidate", **FAILED), TAIL, TASKS, LOST)
    assert [f.outcome for f in verdict.findings] == [Outcome.FAIL] * 3
    assert verdict.findings[0].estimate is None
    assert "candidate/baseline unbounded" in verdict.findings[0].message


def test_unknown_times(rollout_of, judge) -> None:
    """Times that nobody measured leave a latency cell missing, in whole or in part."""
    none = judge(rollout_of().change(slice(None), "candidate", e2e_s=None), FASTER)
    some = judge(rollout_of().change(slice(0, 5), "candidate", e2e_s=None), FASTER)
    few = judge(rollout_of().change(slice(0, 1), "candidate", e2e_s=None), FASTER)
    assert (only(none).reason, only(none).n) == (Reason.MISSING, 0)
    assert (only(some).reason, only(some).n) == (Reason.MISSING, 155)
    assert (only(few).outcome, only(few).n) == (Outcome.PASS, 159)


def test_one_token_answers_owe_no_time_per_token(rollout_of, judge) -> None:
    """A time per output token is undefined for one token, and not missing."""
    rule = FASTER.replace("e2e", "tpot")
    rollout = rollout_of()
    for arm in ("baseline", "candidate"):
        rollout = rollout.change(slice(0, 40), arm, tpot_s=None, output_tokens=1)
    assert (only(judge(rollout, rule)).outcome, only(judge(rollout, rule)).n) == (Outcome.PASS, 120)


def test_all_flagged(rollout_of, judge) -> None:
    """Times that break the contract make the cell a matter of quality."""
    flags = ["times:ttft_exceeds_duration"]
    verdict = judge(rollout_of().change(slice(None), "candidate", quality=flags), FASTER, TASKS)
    assert [(f.outcome, f.reason) for f in verdict.findings] == [
        (Outcome.INCONCLUSIVE, Reason.QUALITY),
        (Outcome.PASS, None),
    ]
    assert "contract broken, 160 of 160 pairs" in verdict.findings[0].message


def test_flagged_counts_leave_times_alone(rollout_of, judge) -> None:
    """Speculation counts that break the contract say nothing of the clock."""
    flags = ["counts:histogram_sum"]
    verdict = judge(rollout_of().change(slice(None), "candidate", quality=flags), FASTER)
    assert verdict.outcome is Outcome.PASS


def test_more_accepted_than_drafted(rollout_of, judge) -> None:
    """Counts that cannot be are no record of what the candidate did."""
    flags = ["counts:accepted_exceeds_draft"]
    finding = only(judge(rollout_of().change(slice(0, 1), "candidate", quality=flags), FASTER))
    assert (finding.outcome, finding.reason) == (Outcome.INCONCLUSIVE, Reason.QUALITY)
    assert "1 of the candidate's answers accepted more draft tokens" in finding.message


@pytest.mark.parametrize(
    ("rule", "least"),
    [
        (FASTER, 30),
        (TAIL, 59),
        (TAIL.replace("p95", "p99"), 299),
        (TASKS, 29),
        (TASKS.replace("-0.10", "-0.02"), 149),
        (TASKS.replace("stat: diff", "stat: mean_diff"), 150),
        (LOST, 59),
    ],
)
def test_below_the_least_n(rollout_of, judge, rule, least) -> None:
    """One pair below what a method needs nothing is decided; at it a good candidate passes."""
    below = only(judge(rollout_of(least - 1), rule))
    assert (below.outcome, below.reason) == (Outcome.INCONCLUSIVE, Reason.TOO_FEW)
    assert below.n_needed == 1
    assert f"needs 1 more pair (at least {least} in all)" in below.message
    assert only(judge(rollout_of(least), rule)).outcome is Outcome.PASS


def test_repeats_are_no_new_evidence(rollout_of, judge) -> None:
    """Four repeats of 20 prompts are 20 clusters, too few for a margin that 80 pairs could show."""
    rollout = rollout_of(80)
    for i, row in enumerate(rollout.rows):
        row |= {"prompt_id": f"p{i // 4}", "repeat": i % 4}
    finding = only(judge(rollout, TASKS))
    assert (finding.n, finding.reason) == (80, Reason.TOO_FEW)
    assert finding.n_needed is not None
    assert finding.n_needed > 36, "nine prompts more would do only if none of them is lost"


def test_a_side_that_never_arrived_counts_as_a_failure(rollout_of, judge) -> None:
    """Missing answers fail the failures cell, leave other cells' n, and may have been wrong."""
    verdict = judge(rollout_of().drop(slice(0, 40), "candidate"), TASKS, LOST)
    assert [(f.metric, f.outcome, f.n) for f in verdict.findings] == [
        ("task_completion", Outcome.INCONCLUSIVE, 120),
        ("failures", Outcome.FAIL, 160),
    ]


def test_lost_pairs_must_be_accounted_for(rollout_of, judge) -> None:
    """A mean of times cannot pass on the pairs that are left, unless failures are proved."""
    lost = rollout_of().drop(slice(0, 3), "candidate")
    assert only(judge(lost, FASTER)).reason is Reason.MISSING
    assert judge(lost, FASTER, LOST).outcome is Outcome.PASS


@pytest.mark.parametrize("rule", [TAIL, TASKS])
def test_lost_answers_may_have_been_the_worst(rollout_of, judge, rule) -> None:
    """A pass holds whatever the answers that never arrived would have been."""
    few = rollout_of().drop(slice(0, 3), "candidate")
    many = rollout_of().drop(slice(0, 20), "candidate")
    assert only(judge(few, rule)).outcome is Outcome.PASS
    finding = only(judge(many, rule))
    assert (finding.outcome, finding.reason) == (Outcome.INCONCLUSIVE, Reason.MISSING)
    assert "at their worst they exceed the margin" in finding.message


def test_failed_answers_are_in_no_geometric_mean(rollout_of, judge) -> None:
    """They cannot enter a mean of logarithms, so that the failures cell must speak for them."""
    failed = rollout_of().change(slice(0, 2), "candidate", **FAILED)
    assert only(judge(failed, FASTER)).reason is Reason.MISSING
    assert only(judge(failed, TAIL)).outcome is Outcome.PASS
    assert [f.n for f in judge(failed, FASTER, LOST).findings] == [158, 160]


def test_answers_that_one_side_has_no_score_for_count_against_a_pass(rollout_of, judge) -> None:
    """An unscored candidate may have been wrong: enough of them leave the cell open."""
    few = rollout_of().change(slice(0, 2), "candidate", score_task_completion=None)
    many = rollout_of().change(slice(0, 30), "candidate", score_task_completion=None)
    assert (only(judge(few, TASKS)).outcome, only(judge(few, TASKS)).n) == (Outcome.PASS, 158)
    found = only(judge(many, TASKS))
    assert (found.outcome, found.reason, found.estimate) == (
        Outcome.INCONCLUSIVE,
        Reason.MISSING,
        0.0,
    )
    assert "30 of 160 pairs lack a score that they are owed" in found.message


def test_unscored_answers_do_not_make_a_failure(rollout_of, judge) -> None:
    """What nobody scored may also have been right: it cannot fail the candidate."""
    rollout = rollout_of().change(slice(0, 80), "candidate", score_task_completion=None)
    assert only(judge(rollout, TASKS)).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(("unscored", "outcome"), [(9, Outcome.PASS), (16, Outcome.INCONCLUSIVE)])
def test_an_evaluation_that_stopped_half_way(rollout_of, judge, unscored, outcome) -> None:
    """Pairs without any score, in a cohort that has some, count against a pass."""
    rollout = rollout_of()
    for arm in ("baseline", "candidate"):
        rollout.change(slice(0, unscored), arm, score_task_completion=None)
    finding = only(judge(rollout, TASKS))
    assert (finding.outcome, finding.n) == (outcome, 160 - unscored)
    if outcome is Outcome.INCONCLUSIVE:
        assert finding.reason is Reason.MISSING
        assert "16 of 160 pairs lack a score that they are owed" in finding.message


def test_a_policy_must_prove_something(evidence_of) -> None:
    """A policy made without prove rules is refused at the gate too."""
    hollow = Policy(name="hollow", alpha_pass=0.05, alpha_fail_family=0.05, min_n=1, rules=())
    with pytest.raises(PolicyError, match="hollow: wanted at least one prove rule"):
        decide(evidence_of([]), hollow, rollout="r")


# --- from cells to the release


def test_a_failed_guard_fails_the_release(rollout_of, judge) -> None:
    """A guard need not pass and must not fail."""
    verdict = judge(worse(rollout_of()), FASTER, guard=[TASKS])
    assert [f.outcome for f in verdict.findings] == [Outcome.PASS, Outcome.FAIL]
    assert verdict.outcome is Outcome.FAIL
    assert verdict.summary == "r fails on 160 pairs: 1 cell is beyond the margin."


def test_an_open_guard_does_not_hold_a_release_up(rollout_of, judge) -> None:
    """A guard without enough pairs leaves a proved release a pass."""
    verdict = judge(rollout_of(40), FASTER, guard=[TAIL])
    assert [f.outcome for f in verdict.findings] == [Outcome.PASS, Outcome.INCONCLUSIVE]
    assert verdict.outcome is Outcome.PASS


def test_an_open_proof_does(rollout_of, judge) -> None:
    """One proof short is inconclusive, and says how far it came."""
    verdict = judge(rollout_of(40), FASTER, TAIL)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.summary == "r is inconclusive on 40 pairs: 1 of 2 required cells are proved."
    assert verdict.reasons == (verdict.findings[1].message,)


def test_a_reported_cell_decides_nothing(rollout_of, judge) -> None:
    """A report may fail in plain sight without a vote, and is no part of Holm's family."""
    verdict = judge(worse(rollout_of()), FASTER, report=[TASKS])
    assert [(f.role, f.outcome) for f in verdict.findings] == [
        (Role.PROVE, Outcome.PASS),
        (Role.REPORT, Outcome.FAIL),
    ]
    assert verdict.outcome is Outcome.PASS


def test_failures_are_corrected_for_the_family(rollout_of, judge) -> None:
    """A p value that fails alone is inconclusive among many cells."""
    rollout = rollout_of().change(slice(0, 24), "candidate", score_task_completion=0.0)
    alone = only(judge(rollout, TASKS))
    assert alone.p_fail is not None
    assert 0.005 < alone.p_fail <= 0.05
    assert alone.outcome is Outcome.FAIL
    among = judge(rollout, TASKS, *(FASTER.replace("1.00", f"1.{i:02}") for i in range(20)))
    assert among.findings[0].outcome is Outcome.INCONCLUSIVE


def test_the_verdict_is_a_function_of_the_evidence(rollout_of, evidence_of) -> None:
    """Rows and columns in any order give the same verdict; one more second another hash."""
    rollout = rollout_of()
    rules = a_policy(FASTER, TASKS)
    verdict = decide(evidence_of(rollout.rows), rules, rollout="r")
    assert decide(evidence_of(rollout.rows[::-1]), rules, rollout="r") == verdict
    assert from_document(Verdict, to_document(verdict)) == verdict
    rollout.change(slice(0, 1), "candidate", e2e_s=2.0)
    other = decide(evidence_of(rollout.rows), rules, rollout="r")
    assert other.data_hash != verdict.data_hash
    assert other.policy_hash == verdict.policy_hash


def test_explains_each_cell_before_any_data(rollout_of, evidence_of) -> None:
    """A cell's claim reads as a sentence with its method and the pairs it needs."""
    rules = a_policy(FASTER, TASKS.replace("pooled", "cohort"))
    assert [hypothesis(cell) for cell in plan(evidence_of(rollout_of().rows), rules)] == [
        (
            "prove: the ratio candidate/baseline of geometric-mean end-to-end latency, pooled, is "
            "≤ 1.00 (t-log-ratio/2, at least 30 pairs)"
        ),
        (
            "prove: candidate − baseline in the share of completed tasks, in `chat`, is ≥ −10.0 pp "
            "(tango-1998/4, at least 29 pairs)"
        ),
    ]
