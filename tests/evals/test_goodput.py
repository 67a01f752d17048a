"""Goodput: the share and the rate of requests within declared bounds; throughput at one load."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract import LATENCIES, Finding, Outcome, Reason, Verdict
from evals import policy as policies
from evals.errors import PolicyError
from evals.evidence.columns import Evidence
from evals.evidence.goodput import within_bounds
from evals.gate import decide
from evals.policy.sections import Goodput
from evals.report.formats import to_markdown

SideOf = Callable[..., Mapping[str, Any]]
EvidenceOf = Callable[[Sequence[Mapping[str, Any]]], Evidence]

BOUNDS = Goodput(ttft_ms=200, tpot_ms=50)
POLICY = """version: 1
name: t
goodput: {ttft_ms: 200, tpot_ms: 50}
prove:
  - {metric: goodput, stat: diff, min: -0.05, scope: %s}
"""


def judged(evidence: Evidence, sections: str = "", scope: str = "pooled") -> Verdict:
    """Return the verdict by one cell of goodput a scope."""
    return decide(evidence, policies.parse(POLICY % scope + sections, "t.yaml"), rollout="r")


def replayed(side: SideOf, slow: Sequence[bool], **others: Any) -> list[dict[str, Any]]:
    """Return pairs whose baseline is good and whose candidate's first token is late if `slow`."""
    rng = np.random.default_rng(1)
    rows = []
    for i, late in enumerate(slow):
        start = (i + 1) * 10**9
        sides = {}
        for arm, least_s in (("baseline", 0.1), ("candidate", 0.3 if late else 0.1)):
            ttft_s = least_s + float(rng.uniform(0, 0.05))
            tpot_s = 0.03 + float(rng.uniform(0, 0.01))
            times = {"ttft_s": ttft_s, "tpot_s": tpot_s, "e2e_s": ttft_s + 19 * tpot_s}
            at = start + int(rng.integers(10**8))
            sides[arm] = side(start_unix_ns=at, **times) | dict(others)
        rows.append({"prompt_id": f"p{i:05}", "cohort": "chat" if i % 2 else "code", **sides})
    return rows


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"ttft_s": 0.2, "tpot_s": 0.05}, 1.0),
        ({"ttft_s": 0.201, "tpot_s": 0.05}, 0.0),
        ({"ttft_s": 0.1, "tpot_s": 0.051}, 0.0),
        ({"ttft_s": 0.1, "tpot_s": None}, None),
        ({"ttft_s": None, "tpot_s": 0.02}, None),
        ({"ttft_s": None, "tpot_s": 0.06}, 0.0),
        ({"ttft_s": 0.1, "tpot_s": None, "output_tokens": 1}, 1.0),
        ({"ttft_s": None, "tpot_s": None, "error_type": "timeout"}, 0.0),
        ({"ttft_s": 0.1, "tpot_s": 0.02, "quality": ["times:negative"]}, None),
        ({"ttft_s": 0.1, "tpot_s": 0.02, "fallback": True}, None),
        ({"ttft_s": 0.1, "tpot_s": 0.02, "output_tokens": 0}, 0.0),
    ],
)
def test_a_request_is_good_within_every_bound(
    evidence_of: EvidenceOf, side: SideOf, columns: Mapping[str, Any], expected: float | None
) -> None:
    """One beyond a bound is not, whatever else is unknown; failed is beyond, unknown is neither."""
    evidence = evidence_of([{"prompt_id": "p", "baseline": side(), "candidate": side(**columns)}])
    found = within_bounds(evidence.candidate, BOUNDS)
    assert [None if np.isnan(x) else x for x in found] == [expected]


def test_every_latency_can_be_bounded() -> None:
    """Goodput has a bound for each latency that is judged, and for nothing else."""
    bounds = {f"{metric}_ms": 100.0 for metric in LATENCIES}
    assert Goodput(**bounds).bounds_ms == bounds
    with pytest.raises(ValueError, match=f"wanted at least one bound of {', '.join(bounds)}"):
        Goodput()


@given(
    st.lists(
        st.tuples(*[st.none() | st.floats(0.001, 0.4)] * 2, st.booleans()), min_size=1, max_size=20
    )
)
def test_wider_bounds_never_lose_a_good_request(rows: list[tuple[Any, Any, bool]]) -> None:
    """And a request that is unknown under wide bounds is not good under narrow ones."""
    from tests.evals.conftest import answered, make_evidence

    evidence = make_evidence(
        [
            {
                "prompt_id": f"p{i}",
                "baseline": answered(),
                "candidate": answered(
                    ttft_s=ttft, tpot_s=tpot, error_type="timeout" if failed else None
                ),
            }
            for i, (ttft, tpot, failed) in enumerate(rows)
        ]
    )
    narrow, wide = (
        within_bounds(evidence.candidate, Goodput(ttft_ms=100 * x, tpot_ms=50 * x)) for x in (1, 2)
    )
    assert not ((narrow == 1) & (wide != 1)).any()
    assert ((wide == 0) <= (narrow == 0)).all()
    assert (narrow[evidence.candidate.failed] == 0).all()


def test_a_share_that_falls_fails_and_an_equal_one_passes(
    evidence_of: EvidenceOf, side: SideOf
) -> None:
    """With limits by Tango's method, and the counts and rates of both arms."""
    same = judged(evidence_of(replayed(side, [False] * 400)))
    late = judged(evidence_of(replayed(side, [i % 5 == 0 for i in range(400)])))
    assert (same.outcome, late.outcome) == (Outcome.PASS, Outcome.FAIL)
    assert late.findings[0].estimate == pytest.approx(-0.2)
    assert late.findings[0].method == "tango-1998/4"
    assert late.goodput_ms == {"ttft_ms": 200, "tpot_ms": 50}
    pool = {row.arm: row for row in late.capacity if row.cohort is None}
    assert [(row.requests, row.good, row.unknown) for row in pool.values()] == [
        (400, 400, 0),
        (400, 320, 0),
    ]
    assert "Capacity: requests with TTFT ≤ 200 ms and TPOT ≤ 50 ms:" in to_markdown(late)
    assert "| all | candidate | 400 | 320 | 80.0% | 0.8" in to_markdown(late)
    assert pool["candidate"].good_per_s == pytest.approx(320 / 400, rel=0.01)
    assert pool["baseline"].output_tokens_per_s == pytest.approx(20, rel=0.01)


def test_each_cohort_is_judged(evidence_of: EvidenceOf, side: SideOf) -> None:
    """A loss in one cohort fails there alone."""
    rows = replayed(side, [i % 2 == 1 and i % 3 == 0 for i in range(600)])
    found = {f.cohort: f.outcome for f in judged(evidence_of(rows), scope="cohort").findings}
    assert found == {"chat": Outcome.FAIL, "code": Outcome.PASS}


def lone(verdict: Verdict) -> Finding:
    """Return the only finding."""
    (finding,) = verdict.findings
    return finding


def test_unknown_times_are_the_worst_of_each_decision(
    evidence_of: EvidenceOf, side: SideOf
) -> None:
    """A tenth without times cannot be within the bounds, and is not dropped."""
    rows = replayed(side, [False] * 400)
    for row in rows[::10]:
        row["candidate"] = dict(row["candidate"]) | {"ttft_s": None}
    finding = lone(judged(evidence_of(rows)))
    assert (finding.outcome, finding.reason) == (Outcome.INCONCLUSIVE, Reason.MISSING)
    assert "40 of 400 pairs have no usable time for a bound" in finding.message


def test_a_candidate_that_fails_requests_loses_goodput(
    evidence_of: EvidenceOf, side: SideOf
) -> None:
    """Requests that time out have no times, and are beyond the bounds."""
    rows = replayed(side, [False] * 400)
    for row in rows[::5]:
        failed = {"ttft_s": None, "tpot_s": None, "error_type": "timeout"}
        row["candidate"] = dict(row["candidate"]) | failed
    assert lone(judged(evidence_of(rows))).outcome is Outcome.FAIL


def test_a_baseline_out_of_bounds_proves_nothing(evidence_of: EvidenceOf, side: SideOf) -> None:
    """Where nearly no request is good, no candidate could be worse."""
    rows = replayed(side, [True] * 400)
    for row in rows:
        slower_s = row["baseline"]["e2e_s"] + 0.2
        row["baseline"] |= {"ttft_s": row["baseline"]["ttft_s"] + 0.2, "e2e_s": slower_s}
    finding = lone(judged(evidence_of(rows)))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "widen the bounds of `goodput`" in finding.message


def test_split_traffic_compares_shares(evidence_of: EvidenceOf, side: SideOf) -> None:
    """Each request was answered by one arm."""
    rows = replayed(side, [i % 4 == 0 for i in range(2_000)])
    for i, row in enumerate(rows):
        del row["baseline" if i % 3 else "candidate"]
    verdict = judged(evidence_of(rows), "design: split\nsampling: {candidate_share: 0.667}\n")
    assert lone(verdict).outcome is Outcome.FAIL
    assert lone(verdict).estimate == pytest.approx(-0.25, abs=0.01)
    assert {row.arm: row.requests for row in verdict.capacity if row.cohort is None} == {
        "baseline": 667,
        "candidate": 1_333,
    }


def test_limits_hold_over_launches(evidence_of: EvidenceOf, side: SideOf) -> None:
    """One slow launch of five is no proof of harm; requests alone would be."""
    slow = [i // 80 == 2 for i in range(400)]
    rows = replayed(side, slow)
    for i, row in enumerate(rows):
        for arm in ("baseline", "candidate"):
            row[arm] = dict(row[arm]) | {"launch": f"{arm}-{i // 80}"}
    finding = lone(judged(evidence_of(rows)))
    assert (finding.outcome, finding.reason) == (Outcome.INCONCLUSIVE, Reason.LAUNCHES)
    assert finding.launches == pytest.approx((0, 0, -1, 0, 0))
    assert finding.method == "tango-1998/4 and t-over-launches/1"
    assert finding.launches_needed is not None


def test_equal_launches_cost_nothing(evidence_of: EvidenceOf, side: SideOf) -> None:
    """All requests good in every launch is a pass, not a lack of spread."""
    rows = replayed(side, [False] * 400)
    for i, row in enumerate(rows):
        for arm in ("baseline", "candidate"):
            row[arm] = dict(row[arm]) | {"launch": f"{arm}-{i // 80}"}
    assert lone(judged(evidence_of(rows))).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("goodput: {}", "goodput: wanted at least one bound of ttft_ms, ttfo_ms, tpot_ms, e2e_ms"),
        ("goodput: {ttft_ms: 0}", "goodput.ttft_ms: wanted milliseconds above 0"),
        ("goodput: {ttft: 1}", "goodput.ttft: unknown key; did you mean"),
        ("", "goodput: missing"),
    ],
)
def test_bounds_are_checked(section: str, words: str) -> None:
    """A rule for goodput needs bounds, and bounds are milliseconds."""
    text = POLICY.replace("goodput: {ttft_ms: 200, tpot_ms: 50}", section) % "pooled"
    with pytest.raises(PolicyError, match=words.replace("{", r"\{")):
        policies.parse(text, "t.yaml")


THROUGHPUT = """version: 1
name: t
prove:
  - {metric: throughput, stat: mean_ratio, min: 0.95, scope: pooled}
"""


def in_loops(side: SideOf, *, candidate_s: float, load: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return pairs of two closed loops with as many requests in flight each."""
    rng = np.random.default_rng(2)
    free = {arm: [0.0] * n for arm, n in load.items()}
    rows = []
    for i in range(400):
        sides = {}
        for arm, mean_s in (("baseline", 1.0), ("candidate", candidate_s)):
            slot = int(np.argmin(free[arm]))
            lasts = mean_s * float(rng.lognormal(0, 0.2))
            at = int(free[arm][slot] * 1e9) + 10**9
            sides[arm] = side(start_unix_ns=at, ttft_s=None, e2e_s=lasts, concurrency=load[arm])
            free[arm][slot] += lasts
        rows.append({"prompt_id": f"p{i:05}", **sides})
    return rows


def test_throughput_is_compared_at_one_number_in_flight(
    evidence_of: EvidenceOf, side: SideOf
) -> None:
    """Candidate over baseline, in output tokens per second."""
    rules = policies.parse(THROUGHPUT, "t.yaml")
    loads = {"baseline": 8, "candidate": 8}
    fast = decide(evidence_of(in_loops(side, candidate_s=0.98, load=loads)), rules, rollout="r")
    finding = lone(fast)
    assert finding.outcome is Outcome.PASS
    assert finding.estimate == pytest.approx(1 / 0.98, rel=0.05)
    pool = {row.arm: row for row in fast.capacity if row.cohort is None}
    assert pool["baseline"].in_flight == pytest.approx(8, rel=0.05)
    assert pool["candidate"].output_tokens_per_s == pytest.approx(8 * 20 / 0.98 / 1.02, rel=0.1)
    slow = evidence_of(in_loops(side, candidate_s=1.02, load={"baseline": 8, "candidate": 4}))
    other = lone(decide(slow, rules, rollout="r"))
    assert (other.outcome, other.reason) == (Outcome.INCONCLUSIVE, Reason.MISMATCH)
    assert "`load: {concurrency: 8}`" in other.message
