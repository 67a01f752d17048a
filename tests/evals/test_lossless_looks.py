"""A lossless policy at declared looks: what is compared, and at which level."""

import math
from dataclasses import replace

import numpy as np
import pytest

from collector.contract import Finding, Outcome, Reason
from evals import policy as policies
from evals.evidence.columns import Divergences, Evidence
from evals.evidence.pairs_table import from_table
from evals.gate import decide
from evals.until_decided import Design, NextLooks, next_looks
from tests.evals.conftest import answered, make_table

LOOKS = (40, 80, 120, 160)
POLICY = policies.parse(
    """
version: 1
name: same
validity: {speculation: optional}
prove:
  - {metric: failures, stat: diff, max: 0.10, scope: pooled}
lossless: {greedy: {max_tie_gap: auto}}
""",
    "same.yaml",
)


def evidence_of(pairs: int, *, differ: int = 0, gap: float = math.nan) -> Evidence:
    """Return the first pairs of a run; the last answers differ, by this gap of logits."""
    declared = {"looks": " ".join(map(str, LOOKS)), "workload": '{"chat": 160}', "temperature": 0.0}
    rows = []
    for number in range(pairs):
        side = declared | {"look": 1 + sum(number >= size for size in LOOKS)}
        side |= {"start_unix_ns": 1 + number * 10**9}
        sides = {"baseline": answered(**side), "candidate": answered(**side)}
        rows.append({"prompt_id": f"p{number:04}", "cohort": "chat", **sides})
    unlike = np.arange(pairs) >= pairs - differ
    found = Divergences(
        compared=np.full(pairs, 20),
        position=np.where(unlike, 5, -1),
        gap=np.where(unlike, gap, math.nan),
        allowed=np.where(unlike, 0.25, math.nan),
        words=np.where(unlike, "prompt p at token 5", None),
        unknown=np.full(pairs, None),
    )
    return replace(from_table(make_table(rows)), divergences=found)


def following(evidence: Evidence) -> NextLooks:
    return next_looks(evidence, POLICY, Design(len(LOOKS)))


def greedy(found: tuple[Finding, ...]) -> Finding:
    return next(one for one in found if one.metric == "greedy_divergence")


def test_equal_answers_pass_at_a_look() -> None:
    """The cell has the look's number, and the verdict is derived alike."""
    evidence = evidence_of(80)
    found = following(evidence)
    assert (found.outcome, found.cohorts) == (Outcome.PASS, {})
    verdict = decide(evidence, POLICY, rollout="r")
    assert greedy(verdict.findings) == greedy(found.findings)
    assert greedy(found.findings).look == 2
    assert greedy(found.findings).confidence == pytest.approx(1 - 0.01 / len(LOOKS))


def test_one_answer_that_is_no_tie_ends_the_run() -> None:
    """A gap of the baseline's own logits that no rounding explains."""
    found = following(evidence_of(40, differ=1, gap=3.0))
    assert (found.outcome, found.cohorts) == (Outcome.FAIL, {})
    assert following(evidence_of(80, differ=1, gap=0.1)).outcome is Outcome.PASS


def test_answers_after_the_newest_look_do_not_count() -> None:
    """The end of a run between two looks is no look."""
    assert greedy(following(evidence_of(79, differ=1, gap=3.0)).findings).outcome is Outcome.PASS


def test_no_further_answers_are_asked_for_that_nobody_can_compare() -> None:
    """Without the model and a control, more answers do not tell ties from faults."""
    found = following(evidence_of(80, differ=2))
    assert (found.outcome, found.cohorts) == (Outcome.INCONCLUSIVE, {})
    assert greedy(found.findings).reason is Reason.AA
