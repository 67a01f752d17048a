"""Launches of the servers: which are independent, and the verdict on times."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from collector.contract import Arm, Finding, Outcome, Reason
from evals import policy as policies
from evals.errors import PolicyError
from evals.evidence.columns import Evidence
from evals.evidence.launches import ArmLaunches, Launches, launches_of
from evals.gate.release import decide, judge_cells
from evals.report.formats import to_markdown
from evals.stats import Insufficient
from evals.stats.launch_ratio import between_arms, over_launches

EvidenceOf = Callable[[Sequence[Any]], Evidence]
SideOf = Callable[..., Any]


def arm(names: Sequence[str | None], present: Sequence[bool] | None = None) -> ArmLaunches:
    there = [True] * len(names) if present is None else present
    return ArmLaunches(np.array(list(names), dtype=np.object_), np.array(there))


def launched(
    baseline: Sequence[str | None], candidate: Sequence[str | None]
) -> tuple[list[int], int] | None:
    """Return each pair's group and how many are independent, of pairs in order of time."""
    found = launches_of(arm(baseline), arm(candidate), np.arange(len(baseline)))
    return None if found is None else (found.of.tolist(), found.independent)


def test_launches_that_share_no_pair_are_independent() -> None:
    """Each side by side with its own partner; groups are numbered by when they began."""
    assert launched("zzzyyyxxx", "aaabbbccc") == ([0] * 3 + [1] * 3 + [2] * 3, 3)


def test_launches_of_one_partner_are_one() -> None:
    """A candidate that was started once beside three baselines was launched once."""
    assert launched("aabbcc", "xxxxxx") == ([0] * 6, 1)


def test_a_stop_between_two_sides_ties_nothing() -> None:
    """One pair with a side before a stop and a side after it joins no launches."""
    assert launched("a" * 20 + "b" * 19, "x" * 19 + "y" * 20) == ([0] * 20 + [1] * 19, 2)


def test_a_launch_of_few_pairs_counts_with_its_neighbour() -> None:
    """What a stop cut off is no launch of its own weight."""
    assert launched("aa" + "b" * 20 + "c" * 20 + "dd", "xx" + "y" * 20 + "z" * 20 + "ww") == (
        [0] * 22 + [1] * 22,
        2,
    )


def test_an_answer_without_a_launch_leaves_them_unknown() -> None:
    """Whether it was of a known launch or of another, nobody knows."""
    assert launched(["a", None], ["x", "x"]) is None
    assert launched([None, None], [None, None]) is None


def test_split_traffic_counts_launches_by_arm() -> None:
    """Nothing is paired: independent are the launches of the arm that has fewer."""
    first = [i % 2 == 0 for i in range(12)]
    names = list("aaaabbbbcccc")
    found = launches_of(arm(names, first), arm(names, [not one for one in first]), np.arange(12))
    assert found is not None
    assert found[1:] == Launches(found.of, 3, 3, 3)[1:]
    assert len(set(found.of.tolist())) == 6


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=1))
def test_groups_follow_the_launches(pairs: list[tuple[str, str]]) -> None:
    """Pairs of equal launches are of one group, whatever the names."""
    found = launched([b for b, _ in pairs], [c for _, c in pairs])
    assert found is not None
    groups = dict(zip(pairs, found[0], strict=True))
    assert [groups[pair] for pair in pairs] == found[0]
    assert found[1] == len(set(found[0]))


def test_limits_over_launches_are_students() -> None:
    """As SciPy's t over the launches' logarithms."""
    logs = np.log([1.02, 0.95, 1.10, 1.04])
    found = over_launches(logs, margin=1.05, bound="max", confidence=0.95)
    assert not isinstance(found, Insufficient)
    test = ttest_1samp(logs, math.log(1.05), alternative="greater")
    low, high = (math.exp(x) for x in ttest_1samp(logs, 0).confidence_interval(0.90))
    assert (found.p_fail, found.lower, found.upper) == pytest.approx((test.pvalue, low, high))


@pytest.mark.parametrize(
    ("last", "upper_is_known", "p_at_most"), [(math.inf, False, 0.05), (math.nan, False, 1.0)]
)
def test_a_launch_without_an_end_passes_nothing(
    last: float, upper_is_known: bool, p_at_most: float
) -> None:
    """It leaves no upper limit, and harm that the others show can still fail."""
    logs = np.array([0.5, 0.6, 0.55, last])
    found = over_launches(logs, margin=1.05, bound="max", confidence=0.95)
    assert not isinstance(found, Insufficient)
    assert (found.upper is not None) == upper_is_known
    assert found.p_fail <= p_at_most
    assert (found.p_fail == 1.0) == math.isnan(last)


def test_arms_whose_launches_are_not_paired() -> None:
    """The spread of either arm's launches widens the limits."""
    alike, spread = np.array([0.0, 0.01, -0.01]), np.array([-0.2, 0.0, 0.2])
    near = between_arms(alike, alike, margin=1.1, bound="max", confidence=0.95)
    far = between_arms(alike, spread, margin=1.1, bound="max", confidence=0.95)
    assert not isinstance(near, Insufficient)
    assert not isinstance(far, Insufficient)
    assert near.upper is not None
    assert far.upper is not None
    assert near.upper < 1.1 < far.upper


POLICY = """
version: 1
name: own
prove:
  - {metric: tpot, stat: geomean_ratio, max: 1.10, scope: pooled}
  - {metric: e2e, stat: p50_ratio, max: 1.10, scope: pooled}
"""
A_LAUNCH = 40


def over(
    evidence_of: EvidenceOf,
    side: SideOf,
    ratios: Sequence[float],
    *,
    named: bool = True,
    split: bool = False,
) -> Evidence:
    """Return pairs of launches one after the other, each with a ratio of its own."""
    rng = np.random.default_rng(7)
    rows = []
    for launch, ratio in enumerate(ratios):
        for number in range(A_LAUNCH):
            n = launch * A_LAUNCH + number
            row: dict[str, Any] = {"prompt_id": f"p{n:04}", "cohort": "chat"}
            for turn, which in enumerate(Arm):
                seconds = rng.lognormal(0, 0.05) * (ratio if which is Arm.CANDIDATE else 1.0)
                first = (turn + number) % 2
                row[which] = side(
                    start_unix_ns=10**12 + 10**9 * (2 * n + first),
                    ttft_s=0.1 * seconds,
                    tpot_s=0.01 * seconds,
                    e2e_s=0.29 * seconds,
                    launch=f"{which}-{launch}" if named else None,
                )
            if split:
                del row[Arm.BASELINE if rng.random() < 0.5 else Arm.CANDIDATE]
            rows.append(row)
    return evidence_of(rows)


def judged(evidence: Evidence, more: str = "") -> tuple[Finding, ...]:
    return judge_cells(evidence, policies.parse(POLICY + more, "policy.yaml"))


FAST_AND_SLOW = (1.27, 1.0, 1 / 1.27, 1.0, 1.0)


def test_launches_that_differ_keep_a_pass_back(evidence_of: EvidenceOf, side: SideOf) -> None:
    """The same times pass as one launch, and say over five how many more launches decide."""
    for found in judged(over(evidence_of, side, FAST_AND_SLOW)):
        assert (found.outcome, found.reason) == (Outcome.INCONCLUSIVE, Reason.LAUNCHES)
        assert "in 5 launches from 0.7" in found.message
        assert f"needs about {found.launches_needed} more launches of each arm" in found.message
        assert found.n_needed is None
        assert found.launches == pytest.approx(FAST_AND_SLOW, rel=0.04)
    alike = judged(over(evidence_of, side, (1.0, 1.01, 0.99, 1.0, 1.0)))
    assert [f.outcome for f in alike] == [Outcome.PASS] * 2
    assert [f.method for f in alike] == [
        "t-log-ratio/2 and t-over-launches/1",
        "mover-order-statistics/4 and t-over-launches/1",
    ]


def test_harm_in_every_launch_fails(evidence_of: EvidenceOf, side: SideOf) -> None:
    """A candidate that is slower in each launch fails; one slow launch of five is no proof."""
    assert {f.outcome for f in judged(over(evidence_of, side, (1.3, 1.4, 1.35)))} == {Outcome.FAIL}
    once = judged(over(evidence_of, side, (1.0, 1.0, 3.0, 1.0, 1.0)))
    assert once[0].outcome is Outcome.INCONCLUSIVE


def test_split_traffic_is_judged_over_launches(evidence_of: EvidenceOf, side: SideOf) -> None:
    """Each arm's launches by themselves."""
    split = POLICY + "design: split\n"
    rules = policies.parse(split, "policy.yaml")
    wide = judge_cells(over(evidence_of, side, FAST_AND_SLOW, split=True), rules)
    near = judge_cells(over(evidence_of, side, (1.0,) * 5, split=True), rules)
    assert {f.reason for f in wide} == {Reason.LAUNCHES}
    assert {f.outcome for f in near} == {Outcome.PASS}


def test_launches_that_differ_are_no_drift(evidence_of: EvidenceOf, side: SideOf) -> None:
    """Ratios that grow from launch to launch are spread, and not a trend of the machine."""
    found = judged(over(evidence_of, side, (0.9, 0.95, 1.0, 1.05, 1.1)))
    assert {f.reason for f in found} <= {None, Reason.LAUNCHES}


@pytest.mark.parametrize(
    ("launches", "named", "words"),
    [
        (2, True, "2 independent launches of the arms' servers; needs 1 more (at least 3 in all)"),
        (3, False, "not every answer names the launch"),
    ],
)
def test_a_policy_can_ask_for_launches(
    evidence_of: EvidenceOf, side: SideOf, launches: int, named: bool, words: str
) -> None:
    """Fewer leave every cell of times inconclusive, however narrow its limits."""
    evidence = over(evidence_of, side, (1.0,) * launches, named=named)
    assert {f.outcome for f in judged(evidence)} == {Outcome.PASS}
    for found in judged(evidence, "launches: {min: 3}\n"):
        assert (found.outcome, found.reason) == (Outcome.INCONCLUSIVE, Reason.LAUNCHES)
        assert words in found.message


def test_a_policy_of_no_launches_is_refused() -> None:
    """The file, the key and the value are named."""
    with pytest.raises(PolicyError, match=r"policy.yaml: launches.min: wanted at least 1, got 0"):
        policies.parse(POLICY + "launches: {min: 0}\n", "policy.yaml")
    plain = policies.parse(POLICY, "policy.yaml")
    assert "launches" not in plain.canonical
    asked = policies.parse(POLICY + "launches: {min: 3}\n", "policy.yaml")
    assert policies.parse(asked.canonical, "again") == asked


@pytest.mark.parametrize(
    ("ratios", "named", "words"),
    [
        ((1.0,), True, "Times speak of these launches alone, 1 of the baseline's server and 1"),
        ((1.0, 1.0, 1.0), True, "Times hold over launches: 3 independent ones"),
        ((1.0,), False, None),
    ],
)
def test_a_verdict_says_of_which_launches_it_speaks(
    evidence_of: EvidenceOf,
    side: SideOf,
    ratios: tuple[float, ...],
    named: bool,
    words: str | None,
) -> None:
    """In its document and in its words; unknown launches are not guessed."""
    rules = policies.parse(POLICY, "policy.yaml")
    verdict = decide(over(evidence_of, side, ratios, named=named), rules, rollout="r")
    said = to_markdown(verdict)
    assert ("launches" in said) == (words is not None)
    assert words is None or words in said
    assert (verdict.launches is None) == (words is None)


def test_a_verdict_says_how_many_launches_are_lacking(
    evidence_of: EvidenceOf, side: SideOf
) -> None:
    """The largest need of what must pass."""
    rules = policies.parse(POLICY, "policy.yaml")
    verdict = decide(over(evidence_of, side, FAST_AND_SLOW), rules, rollout="r")
    needs = [f.launches_needed or 0 for f in verdict.findings]
    assert verdict.launches_needed == max(needs) > 1
    assert f"about {max(needs)} more launches of each arm" in to_markdown(verdict)
    assert verdict.prompts_needed is None
