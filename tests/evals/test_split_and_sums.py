"""Split traffic, whose arms answered different requests; and ratios of sums."""

import numpy as np
import pytest

from collector.contract import Outcome, Reason
from evals import policy
from evals.errors import PolicyError
from evals.gate import decide, hypothesis, plan

SPLIT = "design: split\n"


def rules(*prove: str, sections: str = ""):
    lines = "\n".join(f"  - {{{rule}}}" for rule in prove)
    return policy.parse(f"version: 1\nname: t\n{sections}\nprove:\n{lines}", "t.yaml")


@pytest.fixture
def split_of(side):
    """Give requests, each answered by one arm: in each cohort (requests, candidate's share)."""

    def make(cohorts, seed=1, **effects):
        rng = np.random.default_rng(seed)
        rows = []
        for name, (n, share, base) in cohorts.items():
            for i in range(n):
                arm = "candidate" if i < round(n * share) else "baseline"
                better = effects.get("tasks", 0.0) if arm == "candidate" else 0.0
                speed = effects.get("speed", 1.0) if arm == "candidate" else 1.0
                answer = side(
                    start_unix_ns=int(rng.integers(10**9)),
                    e2e_s=rng.lognormal(base, 0.3) * speed,
                    output_tokens=int(rng.integers(50, 150)),
                    score_task_completion=float(rng.random() < 0.8 + base / 10 + better),
                )
                rows.append({"prompt_id": f"{name}{i:05}", "cohort": name, arm: answer})
        return rows

    return make


EVEN = {"chat": (3_000, 0.5, 0.0), "code": (3_000, 0.5, 1.0)}
CELLS = (
    "metric: e2e, stat: geomean_ratio, max: 1.05, scope: pooled",
    "metric: e2e, stat: p95_ratio, max: 1.25, scope: pooled",
    "metric: task_completion, stat: diff, min: -0.05, scope: cohort",
    "metric: task_completion, stat: mean_diff, min: -0.05, scope: pooled",
    "metric: failures, stat: diff, max: 0.02, scope: pooled",
    "metric: output_tokens, stat: mean_ratio, max: 1.10, scope: pooled",
)


def test_arms_without_a_common_cohort_are_not_compared(split_of, evidence_of) -> None:
    """A candidate that answered one cohort, and a baseline that answered another."""
    rows = split_of({"chat": (300, 0.0, 0.0), "code": (300, 1.0, 0.0)})
    verdict = decide(evidence_of(rows), rules(CELLS[3], sections=SPLIT), rollout="r")
    (finding,) = verdict.findings
    assert (finding.outcome, finding.reason) == (Outcome.INCONCLUSIVE, Reason.MISMATCH)


def test_equal_arms_of_split_traffic_pass(split_of, evidence_of) -> None:
    """Every kind of cell is judged on unpaired answers, by its unpaired method."""
    verdict = decide(evidence_of(split_of(EVEN)), rules(*CELLS, sections=SPLIT), rollout="r")
    assert verdict.outcome is Outcome.PASS
    assert [f.method for f in verdict.findings] == [
        "welch-log-ratio/1",
        "mover-order-statistics/4",
        "miettinen-nurminen-1985/1",
        "miettinen-nurminen-1985/1",
        "welch-1947/1",
        "miettinen-nurminen-1985/1",
        "delta-log-ratio-of-sums/2",
    ]
    assert {f.n for f in verdict.findings} == {3_000, 1_500}
    assert verdict.summary.startswith("r passes on 6000 requests")
    assert verdict.incomplete_pairs == 0
    assert [row.generations for row in verdict.latency[:2]] == [3_000, 3_000]


def test_split_cost_without_a_price_has_no_number(split_of, evidence_of) -> None:
    """Equal prices are not assumed."""
    (finding,) = decide(
        evidence_of(split_of(EVEN)), rules(COST, sections=SPLIT), rollout="r"
    ).findings
    assert (finding.reason, finding.estimate) == (Reason.MISSING, None)


def test_a_bad_candidate_of_split_traffic_fails(split_of, evidence_of) -> None:
    """Slower and worse answers fail without a single pair."""
    rows = split_of(EVEN, speed=1.6, tasks=-0.2)
    verdict = decide(evidence_of(rows), rules(*CELLS, sections=SPLIT), rollout="r")
    assert [f.outcome for f in verdict.findings][:5] == [Outcome.FAIL] * 5


def test_unpaired_cells_say_so(split_of, evidence_of) -> None:
    """The hypothesis names the method and counts answers an arm."""
    cells = plan(evidence_of(split_of(EVEN)), rules(CELLS[3], CELLS[0], sections=SPLIT))
    assert [hypothesis(c).split("(")[1] for c in cells] == [
        "welch-1947/1, at least 200 answers an arm)",
        "welch-log-ratio/1, at least 30 answers an arm)",
    ]


def test_too_few_answers(split_of, evidence_of) -> None:
    """The smaller arm's answers count."""
    rows = split_of({"chat": (300, 0.5, 0.0)})
    (finding,) = decide(evidence_of(rows), rules(CELLS[3], sections=SPLIT), rollout="r").findings
    assert (finding.reason, finding.n, finding.n_needed) == (Reason.TOO_FEW, 150, 50)
    assert "needs 50 more answers an arm" in finding.message


@pytest.mark.parametrize("cell", CELLS[2:4])
def test_proved_harm_of_a_few_split_answers_fails(split_of, evidence_of, cell) -> None:
    """60 of the candidate's answers that are worth nothing: shares and mean scores alike."""
    rows = split_of({"chat": (120, 0.5, 0.0)})
    for row in rows:
        if "candidate" in row:
            row["candidate"] |= {"score_task_completion": 0.0}
    (finding,) = decide(evidence_of(rows), rules(cell, sections=SPLIT), rollout="r").findings
    assert (finding.outcome, finding.n) == (Outcome.FAIL, 60)


def test_a_share_that_was_not_the_designs(split_of, evidence_of) -> None:
    """4,200 of 6,000 where half were wanted decide nothing; as designed they do."""
    rows = split_of({"chat": (6_000, 0.7, 0.0)})
    wrong = decide(evidence_of(rows), rules(CELLS[0], sections=SPLIT), rollout="r")
    assert wrong.findings[0].reason is Reason.SRM
    planned = f"{SPLIT}sampling: {{candidate_share: 0.7}}\n"
    right = decide(evidence_of(rows), rules(CELLS[0], sections=planned), rollout="r")
    assert right.outcome is Outcome.PASS


def test_mixes_that_differ_are_inconclusive_in_the_pool_alone(split_of, evidence_of) -> None:
    """Even totals with uneven cohorts leave the pool undecided."""
    rows = split_of({"chat": (3_000, 0.45, 0.0), "code": (3_000, 0.55, 1.0)})
    found = decide(evidence_of(rows), rules(CELLS[0], sections=SPLIT), rollout="r")
    assert found.findings[0].reason is Reason.SRM
    assert "mixes of cohorts differ" in found.findings[0].message


def test_the_pool_is_weighted_to_the_baselines_mix(split_of, evidence_of) -> None:
    """A candidate that got the slow cohort is not slower for it, and the reversal is told."""
    mixed = {"chat": (4_000, 0.4, 0.0), "code": (4_000, 0.6, 1.0)}
    rows = split_of(mixed, speed=0.95)
    found = decide(evidence_of(rows), rules(*CELLS[:2], sections=SPLIT), rollout="r").findings
    assert [f.estimate for f in found] == pytest.approx([0.95, 0.95], abs=0.04)
    assert all("Simpson" in f.message for f in found)


def test_drift_of_one_arm_in_split_traffic(split_of, evidence_of) -> None:
    """An arm that slows down alone is drift; both together depend on the time they share."""
    for arms, reason in (
        (("candidate",), Reason.DRIFT),
        (("candidate", "baseline"), Reason.DEPENDENCE),
    ):
        rows = split_of(EVEN)
        for row in rows:
            for arm in arms:
                if arm in row:
                    row[arm]["e2e_s"] *= np.exp(row[arm]["start_unix_ns"] / 2e9)
        found = decide(evidence_of(rows), rules(CELLS[1], sections=SPLIT), rollout="r")
        assert found.findings[0].reason is reason


def test_unscored_split_answers_are_missing(split_of, evidence_of) -> None:
    """One answer in ten without a score decides nothing on it."""
    rows = split_of(EVEN)
    for row in rows[::10]:
        row.get("candidate", row.get("baseline")).update(score_task_completion=None)
    found = decide(evidence_of(rows), rules(CELLS[3], sections=SPLIT), rollout="r").findings[0]
    assert found.reason is Reason.MISSING


@pytest.mark.parametrize("cell", CELLS[2:4])
def test_a_split_baseline_with_nothing_to_lose(split_of, evidence_of, cell) -> None:
    """Where the baseline never succeeds, a candidate that does not either proves nothing."""
    rows = split_of(EVEN)
    for row in rows:
        row.get("candidate", row.get("baseline")).update(score_task_completion=0.0)
    verdict = decide(evidence_of(rows), rules(cell, sections=SPLIT), rollout="r")
    found = {(finding.outcome, finding.reason) for finding in verdict.findings}
    assert found == {(Outcome.INCONCLUSIVE, Reason.MISSING)}
    assert all("would be within the margin" in finding.message for finding in verdict.findings)


# --- tokens and cost, in pairs


@pytest.fixture
def pairs_of(side):
    """Give pairs with tokens and seconds; the candidate's are multiplied."""

    def make(n=400, tokens=1.0, seconds=1.0):
        rng = np.random.default_rng(2)
        rows = []
        for i in range(n):
            count, time = int(rng.integers(50, 150)), rng.lognormal(0, 0.2)
            other = max(1, round(count * tokens * rng.lognormal(0, 0.05)))
            rows.append(
                {
                    "prompt_id": f"p{i:04}",
                    "cohort": "chat",
                    "baseline": side(start_unix_ns=i, output_tokens=count, e2e_s=time),
                    "candidate": side(
                        start_unix_ns=i,
                        output_tokens=other,
                        e2e_s=time * seconds * rng.lognormal(0, 0.05),
                    ),
                }
            )
        return rows

    return make


LONGER = "metric: output_tokens, stat: geomean_ratio, max: 1.05, scope: pooled"
SHORTER = "metric: output_tokens, stat: mean_ratio, min: 0.95, scope: pooled"
COST = "metric: cost_per_1k_output_tokens, stat: mean_ratio, max: 1.05, scope: pooled"
PRICES = "prices: {baseline_per_hour: 2.0, candidate_per_hour: 2.5}"


@pytest.mark.parametrize(
    ("factor", "outcomes"),
    [
        (1.0, [Outcome.PASS, Outcome.PASS]),
        (1.2, [Outcome.FAIL, Outcome.PASS]),
        (0.8, [Outcome.PASS, Outcome.FAIL]),
    ],
)
def test_lengths_are_guarded_on_either_side(pairs_of, evidence_of, factor, outcomes) -> None:
    """Longer and shorter answers each break the margin on their side."""
    verdict = decide(evidence_of(pairs_of(tokens=factor)), rules(LONGER, SHORTER), rollout="r")
    assert [f.outcome for f in verdict.findings] == outcomes


def test_cost_without_a_price_is_missing(pairs_of, evidence_of) -> None:
    """Time alone is no cost."""
    (finding,) = decide(evidence_of(pairs_of()), rules(COST), rollout="r").findings
    assert (finding.outcome, finding.reason) == (Outcome.INCONCLUSIVE, Reason.MISSING)
    assert "the policy gives no `prices`, and the answers carry no price" in finding.message
    assert (finding.n, finding.estimate, finding.upper) == (400, None, None)


@pytest.mark.parametrize(("seconds", "outcome"), [(0.7, Outcome.PASS), (1.0, Outcome.FAIL)])
def test_cost_is_time_at_its_price(pairs_of, evidence_of, seconds, outcome) -> None:
    """A dearer route must be as much faster: 0.7 of the time at 1.25 of the price is 0.875."""
    table = pairs_of(seconds=seconds)
    (finding,) = decide(evidence_of(table), rules(COST, sections=PRICES), rollout="r").findings
    assert finding.outcome is outcome
    assert finding.estimate == pytest.approx(1.25 * seconds, rel=0.03)


def test_tokens_that_nobody_counted_are_missing(pairs_of, evidence_of) -> None:
    """Answers without a count leave the cell undecided, none as well as some."""
    for count in (5, 400):
        rows = pairs_of()
        for row in rows[:count]:
            row["candidate"]["output_tokens"] = None
        (finding,) = decide(evidence_of(rows), rules(LONGER), rollout="r").findings
        assert finding.reason is Reason.MISSING


# --- the policy's new keys


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("validty: {}", "validty: unknown key; did you mean validity?"),
        (
            "validity: {srm_pmin: 0.1}",
            "validity.srm_pmin: unknown key; did you mean srm_p_min?",
        ),
        ("validity: {drift_p_min: 2}", "drift_p_min: wanted a number between 0 and 1, got 2.0"),
        (
            "validity: {drift_min_correlation: 1}",
            "drift_min_correlation: wanted a number from 0 to below 1, got 1.0",
        ),
        ("design: paired", "wanted one of paired_replay, mirror, split, got 'paired'"),
        ("sampling: {warmup_drop: -1}", "sampling.warmup_drop: wanted at least 0, got -1"),
        ("dependence: {stretch: 0}", "dependence.stretch: wanted requests, such as 25, or seconds"),
        ("dependence: {stretch: 30m}", "wanted requests, such as 25, or seconds, such as 30s"),
        ("prices: {baseline_per_hour: 2}", "prices.candidate_per_hour: missing key"),
        (
            "prices: {baseline_per_hour: 0, candidate_per_hour: 1}",
            "baseline_per_hour: wanted a price above 0, got 0.0",
        ),
        ("validity: {aa_control: maybe}", "wanted one of optional, required, got 'maybe'"),
    ],
)
def test_unusable_sections_are_named(section, message) -> None:
    """A mistake in a section is one line with its path."""
    with pytest.raises(PolicyError) as caught:
        rules(LONGER, sections=section)
    assert message in str(caught.value)


def test_a_length_has_one_margin_a_rule() -> None:
    """Both sides take two rules."""
    with pytest.raises(PolicyError, match="got both max and min; write a rule for each"):
        rules(SHORTER.replace("min: 0.95", "min: 0.95, max: 1.05"))
