"""The truth table of validity: each violation, the cells it touches, and their outcomes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from collector.contract import Finding, Outcome, Reason, Verdict
from evals import policy
from evals.errors import EvidenceError
from evals.gate import decide

RULES = """
prove:
  - {metric: e2e, stat: geomean_ratio, max: 1.00, scope: pooled}
  - {metric: task_completion, stat: diff, min: -0.10, scope: pooled}
  - {metric: failures, stat: diff, max: 0.10, scope: pooled}
  - {metric: e2e, stat: geomean_ratio, max: 1.00, scope: cohort}
"""
TIMED, TASKS, LOST = ("e2e", None), ("task_completion", None), ("failures", None)
CHAT, CODE = ("e2e", "chat"), ("e2e", "code")
ALL = (TIMED, TASKS, LOST, CHAT, CODE)

TPOT = """
version: 1
name: test
prove:
  - {metric: tpot, stat: geomean_ratio, max: 1.10, scope: pooled}
"""

Rows = list[dict[str, Any]]


@pytest.fixture
def rows_of(side) -> Callable[..., Rows]:
    """Give pairs in ABBA order of a candidate 0.7 times as slow, in two cohorts."""

    def make(n: int = 200, order: str = "abba") -> Rows:
        rng = np.random.default_rng(12)
        rows = []
        for i in range(n):
            seconds = rng.lognormal(0, 0.3)
            first = i % 2 if order == "abba" else 0
            at = (2 * i + first, 2 * i + 1 - first) if order == "abba" else (i, n + i)
            rows.append(
                {
                    "prompt_id": f"p{i:04}",
                    "cohort": ("chat", "code")[i % 4 // 2],
                    "baseline": side(e2e_s=seconds, start_unix_ns=at[0], score_task_completion=1.0),
                    "candidate": side(
                        e2e_s=seconds * 0.7 * rng.lognormal(0, 0.1),
                        start_unix_ns=at[1],
                        score_task_completion=1.0,
                    ),
                }
            )
        return rows

    return make


@pytest.fixture
def judge(evidence_of) -> Callable[..., Verdict]:
    """Give a function that judges rows by the rules and some further sections."""

    def decided(rows: Rows, sections: str = "", control: Rows | None = None) -> Verdict:
        rules = policy.parse(f"version: 1\nname: test\n{sections}\n{RULES}", "test.yaml")
        equal = None if control is None else evidence_of(control)
        return decide(evidence_of(rows), rules, rollout="r", control=equal)

    return decided


def touched(verdict: Verdict, reason: Reason) -> set[tuple[str, str | None]]:
    return {(f.metric, f.cohort) for f in verdict.findings if f.reason is reason}


def spoil(rows: Rows, arm: str, which: Sequence[int], **fields: Any) -> Rows:
    for i in which:
        rows[i][arm] = rows[i][arm] | fields
    return rows


def test_valid_evidence_passes(rows_of, judge) -> None:
    """Interleaved arms without a trend are judged."""
    verdict = judge(rows_of())
    assert verdict.outcome is Outcome.PASS
    assert [(f.metric, f.cohort) for f in verdict.findings] == list(ALL)


def without(rows: Rows) -> Rows:
    for i in range(0, 200, 4):
        rows[i]["candidate"] = None
        rows[i + 1]["candidate"] = rows[i + 1]["candidate"] if i % 8 else None
    return rows


def drifting(rows: Rows) -> Rows:
    for i, row in enumerate(rows):
        row["candidate"]["e2e_s"] *= np.exp(i / 1_000)
    return rows


def late(rows: Rows) -> Rows:
    for row in rows:
        row["baseline"]["client_lag_s"] = row["candidate"]["client_lag_s"] = 0.02
    return rows


ROWS = [
    # what is broken, the reason, the cells that it touches
    (without, Reason.SRM, {TIMED, TASKS, CHAT}),
    (drifting, Reason.DRIFT, {TIMED, CHAT, CODE}),
    (late, Reason.CLIENT, {TIMED, CHAT, CODE}),
]


@pytest.mark.parametrize(("break_", "reason", "cells"), ROWS, ids=[r[1].value for r in ROWS])
def test_what_is_broken_decides_nothing(rows_of, judge, break_, reason, cells) -> None:
    """Touched cells are inconclusive with the reason; the others are judged as ever."""
    verdict = judge(break_(rows_of()))
    assert touched(verdict, reason) == cells
    assert verdict.outcome is not Outcome.PASS
    rest = [f for f in verdict.findings if (f.metric, f.cohort) not in cells]
    assert all(f.reason is None for f in rest)


@pytest.mark.parametrize("break_", [drifting, late])
def test_what_is_broken_never_fails_either(rows_of, judge, break_) -> None:
    """A candidate far beyond the margin is inconclusive too where its times are not valid."""
    rows = break_(rows_of())
    for row in rows:
        row["candidate"]["e2e_s"] *= 3
    assert {f.outcome for f in judge(rows).findings if f.metric == "e2e"} == {Outcome.INCONCLUSIVE}


@pytest.mark.parametrize(
    ("slope", "least", "cells"),
    [(0.012, 0.03, set()), (0.012, 0, {TIMED, CHAT, CODE}), (0.05, 0.03, {TIMED, CHAT, CODE})],
)
def test_a_trend_too_slight_to_matter_is_none(rows_of, judge, slope, least, cells) -> None:
    """One that is significant and explains next to nothing is no drift, unless all are to count."""
    rows = rows_of(30_000)
    for i, row in enumerate(rows):
        row["candidate"]["e2e_s"] *= np.exp(slope * i / len(rows))
    sections = f"validity: {{drift_min_correlation: {least}}}"
    assert touched(judge(rows, sections), Reason.DRIFT) == cells


def test_lost_answers_still_fail_the_failures_cell(rows_of, judge) -> None:
    """A candidate that loses most of one cohort is a mismatch elsewhere, and a fail there."""
    (lost,) = [f for f in judge(without(rows_of())).findings if f.metric == "failures"]
    assert lost.outcome is Outcome.FAIL


def test_one_arm_after_the_other(rows_of, judge) -> None:
    """Times of arms that ran in turn are not compared; what was answered still is."""
    verdict = judge(rows_of(order="a then b"))
    assert touched(verdict, Reason.DRIFT) == {TIMED, CHAT, CODE}
    assert "did not run side by side" in verdict.findings[0].message
    assert verdict.findings[1].outcome is Outcome.PASS


def test_a_stricter_level_hears_more(rows_of, judge) -> None:
    """The policy's levels decide what counts as broken."""
    rows = spoil(late(rows_of()), "baseline", range(200), client_lag_s=0.005)
    rows = spoil(rows, "candidate", range(200), client_lag_s=0.005)
    assert judge(rows).outcome is Outcome.PASS
    strict = judge(rows, "validity: {client_lag_p99_max_frac: 0.001}")
    assert touched(strict, Reason.CLIENT) == {TIMED, CHAT, CODE}


@pytest.mark.parametrize(("tokens", "stops"), [(101, False), (None, True)])
def test_a_late_stamp_is_shared_by_the_tokens(rows_of, evidence_of, tokens, stops) -> None:
    """5 ms late are nothing over 100 tokens of 10 ms; over an unknown number, they may be."""
    rng = np.random.default_rng(14)
    rows = rows_of()
    for row in rows:
        for arm in ("baseline", "candidate"):
            tpot_s = 0.01 * rng.lognormal(0, 0.1)
            row[arm] |= {"client_lag_s": 0.005, "output_tokens": tokens, "tpot_s": tpot_s}
            row[arm] |= {"ttft_s": 0.1, "e2e_s": 0.1 + 100 * tpot_s}
    rules = policy.parse(TPOT, "test.yaml")
    verdict = decide(evidence_of(rows), rules, rollout="r")
    assert (("tpot", None) in touched(verdict, Reason.CLIENT)) == stops


# --- the A/A control


def equal(rows: Rows) -> Rows:
    rng = np.random.default_rng(13)
    for row in rows:
        row["candidate"]["e2e_s"] = row["baseline"]["e2e_s"] * rng.lognormal(0, 0.1)
    return rows


def test_a_required_control_that_is_absent(rows_of, judge) -> None:
    """Without its control nothing is decided, and the message says how to give one."""
    verdict = judge(rows_of(), "validity: {aa_control: required}")
    assert touched(verdict, Reason.AA) == set(ALL)
    assert "name its rollout with `--control`" in verdict.findings[0].message


def test_a_quiet_control(rows_of, judge) -> None:
    """Two equal arms that show no difference let the rollout be judged, under both hashes."""
    verdict = judge(rows_of(), "validity: {aa_control: required}", equal(rows_of()))
    assert verdict.outcome is Outcome.PASS
    assert verdict.data_hash != judge(rows_of()).data_hash


def test_a_control_that_is_not_quiet(rows_of, judge) -> None:
    """A difference between equal arms leaves the cells undecided in which it shows."""
    verdict = judge(rows_of(), "", rows_of())
    assert touched(verdict, Reason.AA) == {TIMED, CHAT, CODE}


def test_a_control_that_did_not_measure_a_cell(rows_of, judge) -> None:
    """A required control that nobody scored cannot vouch for scores."""
    control = equal(rows_of())
    for arm in ("baseline", "candidate"):
        spoil(control, arm, range(200), score_task_completion=None)
    verdict = judge(rows_of(), "validity: {aa_control: required}", control)
    assert touched(verdict, Reason.AA) == {TASKS}


# --- warm-up


def test_warm_up_goes_by_count_and_start(rows_of, judge) -> None:
    """The first pairs to start are dropped, slow or not."""
    rows = spoil(rows_of(), "candidate", range(20), e2e_s=500.0)
    spoil(rows, "candidate", [150], e2e_s=500.0)
    kept = judge(rows, "sampling: {warmup_drop: 20}")
    assert kept.pairs == 180
    assert kept.findings[0].n == 180
    assert kept.findings[0].estimate < 1 < judge(rows).findings[0].estimate


def test_warm_up_of_everything(rows_of, judge) -> None:
    """A warm-up as long as the rollout is a mistake, not a verdict."""
    with pytest.raises(EvidenceError, match="drops 200 as warm-up and there are 200"):
        judge(rows_of(), "sampling: {warmup_drop: 200}")


# --- dependence


def test_slow_spells_widen_a_tail(rows_of, evidence_of) -> None:
    """A tail's limits count spells, not requests: shuffled, the same times reach less far."""
    rng = np.random.default_rng(14)
    times = {
        arm: rng.lognormal(0, 0.1, 2_000) * np.where(np.repeat(rng.random(100) < 0.1, 20), 5, 1)
        for arm in ("baseline", "candidate")
    }
    rule = "prove: [{metric: e2e, stat: p95_ratio, max: 1.25, scope: pooled}]"
    parsed = policy.parse(f"version: 1\nname: t\n{rule}", "t.yaml")

    def upper(order) -> Finding:
        rows = rows_of(2_000)
        for arm, seconds in times.items():
            for row, value in zip(rows, seconds[order], strict=True):
                row[arm]["e2e_s"] = value
        return decide(evidence_of(rows), parsed, rollout="r").findings[0]

    shuffled, spells = upper(rng.permutation(2_000)), upper(np.arange(2_000))
    assert shuffled.upper is not None
    assert spells.upper is None or spells.upper > shuffled.upper
    assert spells.estimate == shuffled.estimate


def test_a_tail_of_one_spell_is_inconclusive_for_dependence(rows_of, evidence_of) -> None:
    """One slow stretch an arm tells nothing of how often they come."""
    rows = rows_of(2_000)
    rng = np.random.default_rng(15)
    for arm, start in (("baseline", 850), ("candidate", 1_010)):
        for i, row in enumerate(rows):
            row[arm]["e2e_s"] = rng.lognormal(0, 0.1) * (5 if start <= i < start + 140 else 1)
    rule = "prove: [{metric: e2e, stat: p95_ratio, max: 1.25, scope: pooled}]"
    parsed = policy.parse(f"version: 1\nname: t\n{rule}", "t.yaml")
    finding = decide(evidence_of(rows), parsed, rollout="r").findings[0]
    assert finding.reason is Reason.DEPENDENCE
    assert "stretches" in finding.message
