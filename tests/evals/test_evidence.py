"""From the collector's table to evidence, and the numbers made of it for the report."""

import math
from dataclasses import replace

import numpy as np
import pytest

from collector.columns import Table
from collector.contract import (
    Acceptance,
    Arm,
    ArmLatency,
    Change,
    Percentiles,
    QualityCounts,
)
from evals import policy
from evals.errors import EvidenceError
from evals.evidence import pairs_table
from evals.evidence.acceptance import acceptance
from evals.evidence.columns import Divergences
from evals.evidence.divergence import divergence
from evals.evidence.latency import latency, percentiles
from evals.evidence.quality import quality
from evals.gate import decide
from evals.gate.suspicions import suspicions

FAILED = {"error_type": "timeout"}


def same(found, wanted) -> None:
    np.testing.assert_array_equal(found, np.array(wanted))


def test_failures_are_infinite_and_worth_nothing(evidence_of, side) -> None:
    """A failed side is +inf slow and scores 0; unscored, unknown and missing stay unknown."""
    rows = [
        {"prompt_id": "a", "baseline": side(score_g=1.0), "candidate": side(**FAILED)},
        {"prompt_id": "b", "baseline": side(score_g=0.5), "candidate": side(e2e_s=None)},
        {"prompt_id": "c", "baseline": side(score_g=1.0), "candidate": None},
        {"prompt_id": "d", "baseline": side(**FAILED), "candidate": side(**FAILED)},
    ]
    found = evidence_of(rows)
    times, scores = found.latency("e2e"), found.scores("g")
    same(times.candidate, [math.inf, math.nan, math.nan, math.inf])
    same(times.known, [True, False, False, True])
    same(times.expected, [True, True, True, True])
    same(scores.baseline, [1.0, 0.5, 1.0, 0.0])
    same(scores.candidate, [0.0, math.nan, math.nan, 0.0])
    same(scores.applicable, [True, True, True, True])


def test_a_metric_that_nobody_was_to_score_stays_out(evidence_of, side) -> None:
    """A failed answer is not 0 in a metric that no answer of its cohort has."""
    rows = [
        {
            "prompt_id": "a",
            "cohort": "rag",
            "baseline": side(score_g=1.0),
            "candidate": side(score_g=1.0),
        },
        {"prompt_id": "b", "cohort": "chat", "baseline": side(), "candidate": side(**FAILED)},
        {
            "prompt_id": "c",
            "cohort": "chat",
            "baseline": side(**FAILED),
            "candidate": side(**FAILED),
        },
    ]
    same(evidence_of(rows).scores("g").applicable, [True, False, False])


def test_the_hash_is_of_the_rows(table_of, side) -> None:
    """Order of rows, and order of columns leave the hash; any value changes it."""
    rows = [
        {"prompt_id": f"p{i}", "baseline": side(e2e_s=1.0 + i), "candidate": side()}
        for i in range(5)
    ]
    table = table_of(rows)
    plain = pairs_table.from_table(table)
    shuffled = table_of(rows[::-1])
    shuffled = Table({name: shuffled[name] for name in reversed(table.columns)})
    assert pairs_table.from_table(shuffled).data_hash == plain.data_hash
    rows[0]["baseline"] = side(e2e_s=1.0 + 2**-50)
    assert pairs_table.from_table(table_of(rows)).data_hash != plain.data_hash


def test_unreadable_tables_are_refused(table_of, side) -> None:
    """A missing column and a key that stands twice are named."""
    row = {"prompt_id": "a", "repeat": 1, "baseline": side(), "candidate": side()}
    with pytest.raises(EvidenceError, match="no column candidate_e2e_s; collector and evals"):
        pairs_table.from_table(table_of([row]).without(["candidate_e2e_s"]))
    with pytest.raises(EvidenceError, match=r"key \('a', 1\) stands in two rows"):
        pairs_table.from_table(table_of([row, row]))


def drafts(side, steps, drafted, accepted, **fields):
    per_pos = {"spec_draft_tokens_per_pos": drafted, "spec_accepted_tokens_per_pos": accepted}
    counts = {
        "speculated": True,
        "counts_usable": True,
        "spec_steps": steps,
        "spec_draft_tokens": sum(drafted),
        "spec_accepted_tokens": sum(accepted),
    }
    return side(**(counts | per_pos | fields))


def test_acceptance_is_made_from_sums(evidence_of, side) -> None:
    """Ratios come from summed counts; broken counts are excluded and counted."""
    rows = [
        {"prompt_id": "a", "baseline": side(), "candidate": drafts(side, 10, [10, 8], [6, 3])},
        {"prompt_id": "b", "baseline": side(), "candidate": drafts(side, 2, [2], [2])},
        {
            "prompt_id": "c",
            "baseline": side(),
            "candidate": drafts(side, 5, [5], [5], counts_usable=False),
        },
    ]
    assert acceptance(evidence_of(rows)) == (
        Acceptance(
            cohort=None,
            arm=Arm.CANDIDATE,
            generations=2,
            excluded=1,
            steps=12,
            draft_tokens=20,
            accepted_tokens=11,
            rate=11 / 20,
            length=1 + 11 / 12,
            rate_per_pos=(8 / 12, 3 / 8),
            drafts_per_pos=(12, 8),
        ),
    )


def test_acceptance_without_counts_has_no_ratio(evidence_of, side) -> None:
    """An arm that speculated and counted nothing has no rate, rather than 0."""
    rows = [{"prompt_id": "a", "baseline": side(), "candidate": side(speculated=True)}]
    (found,) = acceptance(evidence_of(rows))
    assert (found.generations, found.excluded, found.rate, found.length) == (0, 1, None, None)


def test_latency_counts_errors_beside_the_percentiles(evidence_of, side) -> None:
    """Percentiles are of the answers that succeeded in complete pairs, n and errors beside."""
    rows = [
        {"prompt_id": "a", "baseline": side(e2e_s=1.0), "candidate": side(e2e_s=3.0)},
        {"prompt_id": "b", "baseline": side(e2e_s=2.0), "candidate": side(**FAILED)},
        {"prompt_id": "c", "baseline": side(e2e_s=9.0), "candidate": None},
    ]
    baseline, candidate = latency(evidence_of(rows))
    assert baseline == ArmLatency(
        cohort=None,
        arm=Arm.BASELINE,
        generations=2,
        errors=0,
        ttft_s=Percentiles(n=2, p50=0.1, p95=0.1, p99=None),
        ttfo_s=Percentiles(n=0, p50=None, p95=None, p99=None),
        tpot_s=Percentiles(n=0, p50=None, p95=None, p99=None),
        e2e_s=Percentiles(n=2, p50=1.5, p95=pytest.approx(1.95), p99=None),
    )
    assert (candidate.errors, candidate.e2e_s) == (1, Percentiles(n=1, p50=3.0, p95=3.0, p99=None))


@pytest.mark.parametrize(("n", "p99"), [(99, None), (100, pytest.approx(0.9801))])
def test_fewer_than_a_hundred_values_have_no_p99(n: int, p99: float | None) -> None:
    """It would be close to the greatest of them."""
    assert percentiles(np.arange(n) / 100).p99 == p99


def test_wins_losses_and_ties(evidence_of, side) -> None:
    """Scores are compared pair by pair, with the unscored counted and never guessed."""
    scores = [(1.0, 0.5), (0.5, 1.0), (1.0, 1.0), (1.0, None), (None, None)]
    rows = [
        {
            "prompt_id": f"p{i}",
            "cohort": "rag",
            "baseline": side(score_g=b),
            "candidate": side(score_g=c),
        }
        for i, (b, c) in enumerate(scores)
    ]
    rows.append({"prompt_id": "q", "cohort": "chat", "baseline": side(), "candidate": side()})
    pooled, rag = quality(evidence_of(rows))
    assert pooled == QualityCounts(
        metric="g",
        cohort=None,
        n=3,
        unscored=2,
        baseline_mean=0.83333333,
        candidate_mean=0.83333333,
        wins=1,
        losses=1,
        ties=1,
    )
    assert (rag.cohort, rag.n, rag.unscored) == ("rag", 3, 2)


def test_what_scores_the_candidate_against_the_baseline_counts_in_pairs(evidence_of, side) -> None:
    """An answer equals itself: each greedy answer that differs is a loss, a sampled one is no pair.

    What the candidate is preferred by, the baseline lacks.
    """
    sides = [(0.0, 1.0), (0.0, 0.0), (0.0, None), (0.8, None)]
    rows = [
        {
            "prompt_id": f"p{i}",
            "cohort": "chat",
            "baseline": side(temperature=temperature),
            "candidate": side(
                temperature=temperature, score_parity=equal, score_preference=(1.0, 0.5, 0.0)[i % 3]
            ),
        }
        for i, (temperature, equal) in enumerate(sides)
    ]
    found = {item.metric: item for item in quality(evidence_of(rows)) if item.cohort is None}
    parity, preference = found["parity"], found["preference"]
    assert (parity.n, parity.losses, parity.ties, parity.unscored) == (2, 1, 1, 1)
    assert (parity.baseline_mean, parity.candidate_mean) == (1.0, 0.5)
    assert (preference.wins, preference.losses, preference.ties) == (2, 1, 1)


def test_a_policy_can_gate_equal_answers_and_intact_formats(evidence_of, side) -> None:
    """One answer of four differs and is cut off: beyond a margin of a fiftieth of 200 pairs."""
    rules = policy.parse(
        "version: 1\nname: p\nprove:\n"
        "  - {metric: parity, stat: diff, min: -0.02, scope: pooled}\n"
        "  - {metric: format_intact, stat: diff, min: -0.02, scope: pooled}\n",
        "p.yaml",
    )
    rows = [
        {
            "prompt_id": f"p{i:03}",
            "cohort": "chat",
            "baseline": side(temperature=0.0, score_format_intact=1.0),
            "candidate": side(
                temperature=0.0, score_parity=float(i % 4 > 0), score_format_intact=float(i % 4 > 0)
            ),
        }
        for i in range(200)
    ]
    found = decide(evidence_of(rows), rules, rollout="k4").findings
    assert [(f.metric, f.outcome, f.estimate) for f in found] == [
        ("parity", "fail", -0.25),
        ("format_intact", "fail", -0.25),
    ]


def speculating(side, sampled: bool, accepted: int, cohort: str, i: int) -> dict[str, object]:
    """Return a pair of which the candidate drafted 100 tokens."""
    temperature = 0.8 if sampled else 0.0
    drafts = {
        "speculated": True, "counts_usable": True, "spec_steps": 25, "spec_draft_tokens": 100,
        "spec_accepted_tokens": accepted, "temperature": temperature,
    }  # fmt: skip
    return {
        "prompt_id": f"p{i:03}",
        "cohort": cohort,
        "baseline": side(temperature=temperature),
        "candidate": side(**drafts),
    }


def test_an_acceptance_that_collapsed_is_named_with_its_place(evidence_of, side) -> None:
    """In sampled answers, in a cohort, everywhere; never for want of drafts, or for a poor one."""

    def found(*accepted: tuple[bool, int, str]) -> tuple[str, ...]:
        rows = [speculating(side, s, a, c, i) for i, (s, a, c) in enumerate(accepted)]
        return suspicions(evidence_of(rows))

    healthy = [(False, 80, "chat")] * 20
    assert found(*healthy) == ()
    assert found(*healthy, *[(True, 4, "chat")] * 20) == (
        (
            "acceptance collapsed in sampled answers: 4.0% of 2,000 draft tokens were accepted, "
            "80.0% of 2,000 elsewhere"
        ),
    )
    (code,) = found(*healthy, *[(False, 3, "code")] * 10)
    assert code.startswith("acceptance collapsed in `code`: 3.0% of 1,000")
    (everywhere,) = found(*[(True, 4, "chat")] * 20)
    assert everywhere == "acceptance collapsed: 4.0% of 2,000 draft tokens were accepted"
    assert found(*healthy, (True, 0, "chat")) == ()
    assert found(*healthy, *[(True, 15, "code")] * 20) == ()


def test_a_suspicion_stands_in_the_verdict_whatever_it_is(evidence_of, side) -> None:
    """It is no cell's: the summary ends with it."""
    rules = policy.parse(
        "version: 1\nname: p\nprove: [{metric: failures, stat: diff, max: 0.3, scope: pooled}]\n",
        "p.yaml",
    )
    rows = [speculating(side, sampled=True, accepted=3, cohort="chat", i=i) for i in range(40)]
    verdict = decide(evidence_of(rows), rules, rollout="k4")
    assert verdict.outcome == "pass"
    assert len(verdict.suspicions) == 1
    assert "Suspected: acceptance collapsed: 3.0% of 4,000 draft tokens" in verdict.summary


@pytest.mark.parametrize(
    ("equal", "counted", "change", "named"),
    [
        (20, 26, None, True),
        (20, 25, None, False),
        (19, 26, Change.QUANTIZATION, False),
        (0, 26, None, False),
    ],
)
def test_equal_answers_with_other_token_counts_are_named(
    evidence_of, side, equal: int, counted: int, change: Change | None, named: bool
) -> None:
    """Not where texts differ, and not where the arms are no longer one engine on one model."""
    rows = [
        {
            "prompt_id": f"p{i:03}",
            "baseline": side(temperature=0.0, output_tokens=25),
            "candidate": side(temperature=0.0, output_tokens=counted if i % 2 else 25),
        }
        for i in range(20)
    ]
    at = np.where(np.arange(20) < equal, -1, 3)
    words = np.full(20, None, dtype=object)
    none = np.full(20, np.nan)
    compared = Divergences(np.full(20, 24), at, none, none, words, words)
    found = suspicions(replace(evidence_of(rows), divergences=compared, change=change))
    assert bool(found) is named
    if named:
        assert found[0].startswith("output tokens are miscounted: 10 of 20 greedy answers equal")
        assert "510 tokens where the baseline counts 500" in found[0]


def test_divergence_is_counted_by_cohort_and_load(evidence_of, side) -> None:
    """By texts with where they part, else by parity without; answers not compared count nowhere."""
    rows = [
        {
            "prompt_id": f"p{i:03}",
            "cohort": "code" if i % 2 else "chat",
            "baseline": side(temperature=0.0, concurrency=1),
            "candidate": side(
                temperature=0.0,
                concurrency=1 if i < 10 else 9,
                score_parity=None if i == 19 else float(i < 12),
            ),
        }
        for i in range(20)
    ]
    by_scores = evidence_of(rows)
    assert [(d.cohort, d.in_flight, d.compared, d.diverged) for d in divergence(by_scores)] == [
        (None, None, 19, 7),
        ("chat", None, 10, 4),
        ("code", None, 9, 3),
        (None, (1, 1), 10, 0),
        (None, (8, 15), 9, 7),
    ]
    assert {d.position_p50 for d in divergence(by_scores)} == {None}
    number = np.arange(20)
    by_texts = replace(
        by_scores,
        divergences=Divergences(
            compared=np.where(number < 18, 40, -1),
            position=np.where((number >= 12) & (number < 18), number, -1),
            gap=np.full(20, np.nan),
            allowed=np.full(20, np.nan),
            words=np.full(20, None),
            unknown=np.full(20, None),
        ),
    )
    pool = divergence(by_texts)[0]
    assert (pool.compared, pool.diverged) == (18, 6)
    assert (pool.position_p25, pool.position_p50, pool.position_p75) == (13.25, 14.5, 15.75)
    assert (
        divergence(evidence_of([{"prompt_id": "p", "baseline": side(), "candidate": side()}])) == ()
    )
