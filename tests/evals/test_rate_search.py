"""The search for the greatest rate that holds a share of good requests."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract import Arm
from evals import policy as policies
from evals.errors import PolicyError
from evals.evidence.columns import Evidence
from evals.rate_search import CLOSE, Held, greatest, held, next_rate, wanted_share

SideOf = Callable[..., Mapping[str, Any]]
EvidenceOf = Callable[[Sequence[Mapping[str, Any]]], Evidence]
POLICY = """version: 1
name: t
goodput: {ttft_ms: 200, share: 0.9}
prove:
  - {metric: goodput, stat: diff, min: -0.05, scope: pooled}
"""

rates = st.floats(0.5, 200).map(lambda rate: float(f"{rate:.3g}"))


@given(rates, rates)
def test_the_search_ends_next_to_each_arms_capacity(baseline: float, candidate: float) -> None:
    """Below it by a factor of at most 1.25, unless an end is reached; never above."""
    capacity = {Arm.BASELINE: baseline, Arm.CANDIDATE: candidate}
    probes: dict[float, dict[Arm, bool | None]] = {}
    while (rate := next_rate(probes, 1.0, 100.0)) is not None:
        assert rate not in probes
        assert 1 <= rate <= 100
        probes[rate] = {arm: rate <= most for arm, most in capacity.items()}
        assert len(probes) < 20
    for arm, most in capacity.items():
        found = greatest(probes, arm)
        if most < 1:
            assert found.holds is None
        elif most >= 100:
            assert found == (100.0, None)
        else:
            assert found.holds is not None
            assert found.fails is not None
            assert found.holds <= most < found.fails
            assert found.fails / found.holds <= CLOSE * 1.01


def test_undecided_is_neither_a_rate_that_holds_nor_one_that_fails() -> None:
    """The search goes on below it, and the rates that hold end before it."""
    probes = {
        1.0: {Arm.BASELINE: True, Arm.CANDIDATE: True},
        4.0: {Arm.BASELINE: None, Arm.CANDIDATE: True},
        8.0: {Arm.BASELINE: False, Arm.CANDIDATE: True},
    }
    assert greatest(probes, Arm.BASELINE) == (1.0, 8.0)
    assert greatest(probes, Arm.CANDIDATE) == (8.0, None)
    assert next_rate(probes, 1.0, 8.0) == 2.0


@pytest.mark.parametrize(
    ("late", "unknown", "holds"),
    [(0, 0, True), (0, 30, None), (20, 0, None), (100, 0, False), (60, 30, False)],
)
def test_a_rate_holds_by_its_limits(
    evidence_of: EvidenceOf, side: SideOf, late: int, unknown: int, holds: bool | None
) -> None:
    """Of 200 requests; unknown ones are at their worst for either answer."""
    rows = []
    for i in range(200):
        place = (i * 77) % 200  # spread over time
        ttft_s = None if place < unknown else 0.3 if place < unknown + late else 0.1
        candidate = side(start_unix_ns=(i + 1) * 10**9, ttft_s=ttft_s)
        rows.append({"prompt_id": f"p{i:03}", "baseline": side(), "candidate": candidate})
    found: Held = held(evidence_of(rows), policies.parse(POLICY, "t.yaml"))[Arm.CANDIDATE]
    assert found.holds(0.9) is holds
    assert found.n == 200
    assert (found.share is None) == (unknown > 0)


def test_a_policy_names_the_share() -> None:
    """Bounds alone do not say which share of requests must be within them."""
    assert wanted_share(policies.parse(POLICY, "t.yaml")) == 0.9
    without = policies.parse(POLICY.replace(", share: 0.9", ""), "t.yaml")
    with pytest.raises(PolicyError, match=r"goodput.share: missing"):
        wanted_share(without)
