"""Cells of the prefix cache: cached ÷ input tokens, candidate against baseline."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from collector.contract import Arm, Finding, Outcome, Reason
from evals import policy
from evals.evidence.columns import Evidence
from evals.gate import decide
from evals.report.formats import to_markdown

TEXT = """
version: 1
name: cache
design: {design}
validity: {{speculation: optional}}
prove:
  - {{metric: cached_input_tokens, stat: rate_diff, min: -0.05, scope: pooled}}
"""
EvidenceOf = Callable[[Sequence[Any]], Evidence]


def rules(design: str = "paired_replay") -> policy.Policy:
    return policy.parse(TEXT.format(design=design), "cache.yaml")


def rows(side: Callable[..., Any], cached: Sequence[tuple[int | None, int | None]]) -> list[Any]:
    """Return pairs of 100 input tokens, of which baseline and candidate read these from cache."""
    return [
        {
            "prompt_id": f"p{i:04}",
            "cohort": "c",
            **{
                arm: side(input_tokens=100, cached_input_tokens=n)
                for arm, n in zip(Arm, pair, strict=True)
            },
        }
        for i, pair in enumerate(cached)
    ]


@pytest.fixture
def judged(
    evidence_of: EvidenceOf, side: Callable[..., Any]
) -> Callable[[Sequence[tuple[int | None, int | None]]], Finding]:
    return lambda cached: decide(evidence_of(rows(side, cached)), rules(), rollout="r").findings[0]


def test_a_candidate_that_hits_less_fails(judged: Callable[..., Finding]) -> None:
    """The finding has both arms' shares, in points."""
    found = judged([(60 + i % 20, 10 + i * 7 % 23) for i in range(230)])
    assert found.outcome is Outcome.FAIL
    assert (found.estimate, found.unit) == (pytest.approx(-0.48326, abs=1e-3), "difference")
    assert "share of input tokens read from cache, pooled" in found.message
    assert "% of the baseline's, 21.0% of the candidate's" in found.message
    assert "−48." in found.message


def test_equal_hits_pass(judged: Callable[..., Finding]) -> None:
    """Also if the pairs differ at random, within the margin."""
    drawn = np.random.default_rng(3)
    pairs = [(int(a), int(b)) for a, b in drawn.integers(40, 60, (300, 2))]
    found = judged(pairs)
    assert found.outcome is Outcome.PASS
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower < 0 < found.upper


def test_absent_counts_are_absent(judged: Callable[..., Finding]) -> None:
    """Not 0: an arm without counts is no arm without hits."""
    found = judged([(50, None)] * 200)
    assert (found.outcome, found.reason) == (Outcome.INCONCLUSIVE, Reason.MISSING)
    assert found.estimate is None


def test_unknown_counts_stand_against_the_decision(judged: Callable[..., Finding]) -> None:
    """Three in a hundred are too many; one in two hundred is taken at its worst."""
    drawn = np.random.default_rng(3)
    pairs: list[tuple[int | None, int | None]] = [
        (int(a), int(b)) for a, b in drawn.integers(40, 60, (400, 2))
    ]
    some = judged([*pairs[:-2], (50, None), (50, None)])
    many = judged([*pairs[:-12], *[(50, None)] * 12])
    assert some.outcome is Outcome.PASS
    assert some.lower is not None
    assert some.lower < (judged(pairs).lower or 0)
    assert (many.outcome, many.reason) == (Outcome.INCONCLUSIVE, Reason.MISSING)


def test_caches_that_are_off_decide_nothing(judged: Callable[..., Finding]) -> None:
    """Nothing varies."""
    assert judged([(0, 0)] * 200).outcome is Outcome.INCONCLUSIVE


def test_turns_of_a_session_are_one_cluster(
    evidence_of: EvidenceOf, side: Callable[..., Any]
) -> None:
    """Eight turns that hit or miss together count as one: the limits are wider."""
    made = rows(side, [(50, 20 if i // 8 % 2 else 70) for i in range(800)])
    alone = decide(evidence_of(made), rules(), rollout="r").findings[0]
    for i, row in enumerate(made):
        for arm in Arm:
            row[arm] = row[arm] | {"conversation_id": f"s{i // 8}", "turn": i % 8 + 1}
    together = decide(evidence_of(made), rules(), rollout="r").findings[0]
    widths = [(f.upper or 0) - (f.lower or 0) for f in (alone, together)]
    assert widths[1] > 2 * widths[0]


def test_split_traffic_is_judged_by_arm(evidence_of: EvidenceOf, side: Callable[..., Any]) -> None:
    """Each request has one side; the markdown has the cell."""
    made = rows(side, [(60 + i % 20, 10 + i % 20) for i in range(600)])
    for i, row in enumerate(made):
        del row[list(Arm)[i % 2]]
    verdict = decide(evidence_of(made), rules("split"), rollout="r")
    assert verdict.findings[0].outcome is Outcome.FAIL
    assert "cached_input_tokens rate_diff" in to_markdown(verdict)


@pytest.mark.slow
def test_at_the_margin_few_pass(judged: Callable[..., Finding]) -> None:
    """Of 200 rollouts whose candidate hits five points less, at most one in ten passes."""
    drawn = np.random.default_rng(11)
    passed = 0
    for _ in range(200):
        baseline = drawn.integers(0, 101, 150)
        candidate = np.clip(np.rint(0.9 * baseline + drawn.normal(0, 5, 150)), 0, 100)
        passed += judged(list(zip(baseline.tolist(), candidate.astype(int).tolist(), strict=True))
                         ).outcome is Outcome.PASS  # fmt: skip
    assert passed <= 20
