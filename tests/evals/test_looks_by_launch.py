"""Runs until decided whose every look has a launch of the servers of its own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from collector.contract import Outcome, Reason
from evals import policy as policies
from evals.errors import PolicyError
from evals.evidence.columns import Evidence
from evals.evidence.pairs_table import from_table
from evals.gate.release import judge_cells
from evals.policy.registration import registration_of
from evals.until_decided import Design, next_looks, policy_of
from tests.evals.conftest import answered, make_table

LAUNCHES, A_LAUNCH = 6, 40
DESIGN = Design(LAUNCHES, relaunched=True)
TEXT = """
version: 1
name: times
validity: {speculation: optional}
prove:
  - {metric: e2e, stat: geomean_ratio, max: 1.10, scope: pooled}
  - {metric: task_completion, stat: diff, min: -0.10, scope: pooled}
"""
POLICY = policies.parse(TEXT + "launches: {min: 3}", "times.yaml")


def evidence_of(ratios: Sequence[float], *, lost: float = 0.0) -> Evidence:
    """Return the pairs of as many launches; in each the candidate's times differ by a ratio."""
    rng = np.random.default_rng(7)
    declared = {
        "looks": " ".join(str(A_LAUNCH * (n + 1)) for n in range(LAUNCHES)),
        "workload": f'{{"chat": {LAUNCHES * A_LAUNCH}}}',
    }
    rows: list[dict[str, Any]] = []
    for launch, ratio in enumerate(ratios):
        for place in range(A_LAUNCH):
            number = launch * A_LAUNCH + place
            named = declared | {"look": launch + 1, "start_unix_ns": 1 + number * 10**9}
            seconds = rng.lognormal(0, 0.02, 2) * (1, ratio)
            right = float(rng.random() >= lost)
            rows.append(
                {
                    "prompt_id": f"p{number:04}",
                    "cohort": "chat",
                    "baseline": answered(
                        **named, launch=f"b{launch}", e2e_s=seconds[0], score_task_completion=1.0
                    ),
                    "candidate": answered(
                        **named, launch=f"c{launch}", e2e_s=seconds[1], score_task_completion=right
                    ),
                }
            )
    return from_table(make_table(rows))


def test_no_time_is_decided_by_fewer_launches_than_the_policy_wants() -> None:
    """The run goes on to the next launch, and ends once limits hold over launches."""
    for launches in (1, 2):
        found = next_looks(evidence_of([1.0] * launches), POLICY, DESIGN)
        waits = {(one.metric, one.reason) for one in found.waiting}
        assert ("e2e", Reason.LAUNCHES) in waits
        assert found.cohorts == {"chat": launches + 1}
    found = next_looks(evidence_of([1.0, 1.01, 0.99]), POLICY, DESIGN)
    assert (found.outcome, found.cohorts) == (Outcome.PASS, {})


def test_launches_that_differ_take_more_of_them() -> None:
    """Two modes 27 % apart: the first three do not decide."""
    found = next_looks(evidence_of([1.27, 1.0, 0.79]), POLICY, DESIGN)
    assert (found.outcome, found.cohorts) == (Outcome.INCONCLUSIVE, {"chat": 4})


def test_harm_to_answers_needs_no_second_launch() -> None:
    """Scores do not depend on the launch."""
    found = next_looks(evidence_of([1.0], lost=0.6), POLICY, DESIGN)
    assert (found.outcome, found.cohorts) == (Outcome.FAIL, {})


def test_later_launches_do_not_change_an_earlier_look() -> None:
    """A look counts the launches up to it, whenever it is judged."""
    ratios = [1.0, 1.01, 0.99, 1.0, 1.01, 1.0]
    then = {
        f.metric: (f.look, f.outcome, f.upper) for f in judge_cells(evidence_of(ratios[:3]), POLICY)
    }
    now = {f.metric: (f.look, f.outcome, f.upper) for f in judge_cells(evidence_of(ratios), POLICY)}
    assert then == now
    assert now["e2e"][:2] == (3, Outcome.PASS)


@pytest.mark.parametrize(
    ("rule", "got"), [("", "none"), ("launches: {min: 2}", "2"), ("launches: {min: 7}", "7")]
)
def test_a_policy_must_want_as_many_launches_as_limits_take(
    client: Any, rule: str, got: str
) -> None:
    """Otherwise one launch would decide a time."""
    given = policies.parse(TEXT + rule, "times.yaml")
    client.register_policy("r", registration_of(given))
    with pytest.raises(PolicyError, match=rf"launches\.min: wanted 3 to 6 \(got {got}\)"):
        policy_of(client, "r", None, LAUNCHES)
