"""Cost in money, by the prices that answers carry."""

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from collector.contract import CostComparison, Outcome, RoutePrice, price_of
from evals import policy as policies
from evals.evidence.columns import Evidence
from evals.gate import decide
from evals.gate.cost_comparison import cost_comparisons
from evals.policy import Policy
from evals.report import cost_words
from evals.report.formats import to_markdown
from evals.report.terminal import print_verdict
from evals.stats.dependence import INDEPENDENT
from evals.stats.smooth_function import limits, linear, over_groups

S = 10**9
HOUR = RoutePrice(currency="USD", per_accelerator_hour=3.6, accelerators=2)
Rows = list[dict[str, Any]]


def policy(section: str = "design: paired_replay", metric: str = "output_tokens") -> Policy:
    stat = "geomean_ratio" if metric == "output_tokens" else "mean_ratio"
    rule = f"{{metric: {metric}, stat: {stat}, max: 1.05, scope: pooled}}"
    return policies.parse(f"version: 1\nname: p\n{section}\nprove:\n  - {rule}\n", "p.yaml")


@pytest.fixture(scope="session")
def replayed(side: Callable[..., Mapping[str, Any]]) -> Callable[..., Rows]:
    """Return pairs answered one request after the other: 2 s and 20 tokens, candidate 1 s and 20.

    The candidate's first token takes 0.05 s, and 16 of 19 later ones are drafts of 32.
    """

    def make(n: int = 200, price: RoutePrice | None = HOUR, *, spread: float = 0.1) -> Rows:
        rng = np.random.default_rng(7)
        text = None if price is None else price.text
        rows, now = [], S
        for number in range(n):
            row: dict[str, Any] = {"prompt_id": f"p{number}", "cohort": "ab"[number % 2]}
            for arm, seconds in (("baseline", 2.0), ("candidate", 1.0)):
                took = seconds * math.exp(rng.normal(0, spread))
                row[arm] = side(
                    start_unix_ns=now,
                    e2e_s=took,
                    ttft_s=0.05,
                    tpot_s=(took - 0.05) / 19,
                    price=text,
                )
                now += int(took * S)
            row["candidate"] |= {
                "counts_usable": True,
                "spec_steps": 3,
                "spec_draft_tokens": 32,
                "spec_accepted_tokens": 16,
            }
            rows.append(row)
        return rows

    return make


def pooled(evidence: Evidence, rules: Policy | None = None) -> CostComparison:
    return cost_comparisons(evidence, rules or policy())[0]


def test_an_hour_is_shared_by_the_tokens_of_its_answers(replayed, evidence_of) -> None:
    """One request at a time: the price of a second, times seconds, by tokens."""
    rows = replayed()
    found = pooled(evidence_of(rows))
    seconds = {arm: sum(row[arm]["e2e_s"] for row in rows) for arm in ("baseline", "candidate")}
    for arm, took_s in seconds.items():
        wanted = took_s * 7.2 / 3600 / (200 * 20) * 1e6
        assert getattr(found, arm) == pytest.approx(wanted, rel=1e-6)
    assert (found.currency, found.n, found.left_out, found.notes) == ("USD", 200, 0, ())
    assert found.in_flight == pytest.approx(1.0)
    assert found.difference == pytest.approx(found.candidate - found.baseline)
    assert found.lower < found.difference < found.upper < 0


def test_requests_in_flight_share_the_price(replayed, evidence_of) -> None:
    """Two copies of every request at once: each costs half."""
    rows = replayed()
    alone = pooled(evidence_of(rows))
    twins = [{**row, "prompt_id": f"{row['prompt_id']}-again"} for row in rows]
    both = pooled(evidence_of([*rows, *twins]))
    assert both.in_flight == pytest.approx(2.0)
    assert both.candidate == pytest.approx(alone.candidate / 2)


def test_rejected_drafts_cost_the_time_that_passes_took_longer(replayed, evidence_of) -> None:
    """3 passes of the candidate take 0.95 s, as many of the baseline 3/19 of 1.95 s."""
    found = pooled(evidence_of(replayed(spread=0.001)))
    extra_s = 0.95 - 3 * 1.95 / 19
    assert found.rejected_drafts == pytest.approx(extra_s * 0.5 * 7.2 / 3600 / 20 * 1e6, rel=1e-3)
    assert found.rejected_drafts_lower < found.rejected_drafts < found.rejected_drafts_upper


def test_cohorts_have_figures_of_their_own(replayed, evidence_of) -> None:
    """The pool comes first, then each cohort."""
    found = cost_comparisons(evidence_of(replayed()), policy())
    assert [(one.cohort, one.n) for one in found] == [(None, 200), ("a", 100), ("b", 100)]


def test_few_prompts_have_figures_without_limits(replayed, evidence_of) -> None:
    """As a ratio of sums, limits need 100 prompts."""
    found = pooled(evidence_of(replayed(99)))
    assert found.difference is not None
    assert (found.lower, found.upper, found.rejected_drafts_upper) == (None, None, None)
    assert found.notes == ("limits need 100 prompts",)


def test_tokens_have_prices_too(replayed, evidence_of) -> None:
    """Input, cached input and output each at its price; what drafts cost is not known from it."""
    price = RoutePrice(
        currency="EUR",
        per_million_input_tokens=1.0,
        per_million_cached_input_tokens=0.25,
        per_million_output_tokens=4.0,
    )
    rows = replayed(price=price)
    for number, row in enumerate(rows):
        row["candidate"]["cached_input_tokens"] = 4 * (number % 2)
        row["baseline"]["cached_input_tokens"] = 0
    found = pooled(evidence_of(rows))
    assert found.baseline == pytest.approx(4.5)
    assert found.candidate == pytest.approx((10 * 1 - 2 * 0.75 + 20 * 4) / 20)
    assert (found.currency, found.in_flight, found.rejected_drafts) == ("EUR", None, None)
    assert found.lower < found.difference < found.upper
    for row in rows:
        row["candidate"]["cached_input_tokens"] = None
    found = pooled(evidence_of(rows))
    assert found.candidate is None
    assert found.notes[0].startswith("200 of 200 answered pairs lack a price")


def test_arms_may_be_priced_in_two_ways(replayed, evidence_of) -> None:
    """A self-hosted server against a hosted model."""
    hosted = RoutePrice(currency="USD", per_million_input_tokens=1.0, per_million_output_tokens=4.0)
    rows = replayed()
    for row in rows:
        row["baseline"]["price"] = hosted.text
    found = pooled(evidence_of(rows))
    assert found.baseline == pytest.approx(4.5)
    assert found.candidate == pytest.approx(pooled(evidence_of(replayed())).candidate)


def test_without_prices_nothing_is_said(replayed, evidence_of) -> None:
    """No price, no figure."""
    assert cost_comparisons(evidence_of(replayed(price=None)), policy()) == ()


LACKING = "200 of 200 answered pairs lack"
APART = "the answers' prices are not in one currency, or cannot be read"


@pytest.mark.parametrize(
    ("spoil", "arms", "note"),
    [
        ({"price": "{}"}, ["candidate"], LACKING),
        ({"price": "12"}, ["baseline", "candidate"], APART),
        ({"price": replace(HOUR, currency="EUR").text}, ["candidate"], APART),
        ({"output_tokens": None}, ["candidate"], LACKING),
        ({"e2e_s": None}, ["candidate"], "no usable time of an answer is known"),
    ],
)
def test_what_is_unknown_is_absent(replayed, evidence_of, spoil, arms, note) -> None:
    """Answers that cannot be priced leave no figure, and the comparison says why."""
    rows = replayed()
    for row in rows:
        for arm in arms:
            row[arm] |= spoil
    found = pooled(evidence_of(rows))
    assert found.notes[0].startswith(note)
    numbers = (found.baseline, found.candidate, found.difference, found.rejected_drafts)
    assert numbers == (None,) * 4


def test_live_traffic_does_not_share_an_hour(replayed, evidence_of) -> None:
    """The requests that were not mirrored are not among the pairs."""
    for design in ("mirror", "split"):
        found = pooled(evidence_of(replayed()), policy(f"design: {design}"))
        assert found.candidate is None
        assert "live traffic records a part" in found.notes[0]


def test_split_traffic_has_prices_by_token(replayed, evidence_of) -> None:
    """Each arm's own answers count."""
    hosted = RoutePrice(currency="USD", per_million_input_tokens=1.0, per_million_output_tokens=4.0)
    rows = replayed(400, price=hosted)
    rng = np.random.default_rng(3)
    for number, row in enumerate(rows):
        del row["candidate" if number % 2 else "baseline"]
        (answer,) = (row[arm] for arm in ("candidate", "baseline") if arm in row)
        answer["output_tokens"] = int(rng.integers(10, 30))
    found = pooled(evidence_of(rows), policy("design: split"))
    assert found.n == 200
    assert found.lower < found.difference < found.upper


def test_a_load_apart_is_no_comparison(replayed, evidence_of) -> None:
    """Five copies of the baseline's requests at once, and one of the candidate's at a time."""
    rows = replayed(50)
    more, now = [], S
    for copy in range(5):
        for row in rows:
            candidate = {**row["candidate"], "start_unix_ns": now}
            now += 2 * S
            more.append({**row, "prompt_id": f"{row['prompt_id']}-{copy}", "candidate": candidate})
    found = pooled(evidence_of(more))
    assert "in flight 5.0 for the baseline and 1.0 for the candidate" in found.notes[0]


def test_passes_that_took_no_longer_wasted_nothing_measurable(replayed, evidence_of) -> None:
    """Every draft that was rejected came for free, as far as can be seen: no number, and why."""
    rows = replayed()
    for row in rows:
        row["candidate"] |= {"spec_accepted_tokens": 1, "spec_draft_tokens": 2}
    found = pooled(evidence_of(rows))
    assert found.rejected_drafts is None
    assert "took no longer than the baseline's" in found.notes[0]


def test_a_baseline_that_drafts_hides_the_plain_pass(replayed, evidence_of) -> None:
    """The cost of answers is known, that of rejected drafts is not."""
    rows = replayed()
    for row in rows:
        row["baseline"]["speculated"] = True
    found = pooled(evidence_of(rows))
    assert found.difference is not None
    assert found.rejected_drafts is None
    assert found.notes[0].startswith("the baseline drafts too")


def test_a_rule_on_cost_takes_the_recorded_prices(replayed, evidence_of) -> None:
    """A policy without prices judges by those of the rollout; its own count first."""
    rules = policy(metric="cost_per_1k_output_tokens")
    rows = replayed()
    (finding,) = decide(evidence_of(rows), rules, rollout="r").findings
    assert finding.outcome is Outcome.PASS
    found = pooled(evidence_of(rows))
    assert finding.estimate == pytest.approx(found.candidate / found.baseline)
    dear = policy(
        "prices: {baseline_per_hour: 1, candidate_per_hour: 3}", "cost_per_1k_output_tokens"
    )
    (other,) = decide(evidence_of(rows), dear, rollout="r").findings
    assert other.estimate == pytest.approx(3 * finding.estimate, rel=1e-6)


def test_the_verdict_holds_the_comparison(replayed, evidence_of) -> None:
    """It is part of the decision's document."""
    evidence = evidence_of(replayed())
    verdict = decide(evidence, policy(), rollout="r")
    assert verdict.costs == cost_comparisons(evidence, policy())


def test_reports_show_the_comparison(replayed, evidence_of) -> None:
    """A terminal and a pull request get the same numbers, and why one is absent."""
    rows = replayed(99)
    costs = cost_comparisons(evidence_of(rows), policy())
    verdict = decide(evidence_of(rows), policy(), rollout="r")
    out = io.StringIO()
    print_verdict(Console(file=out, width=160, color_system=None), verdict)
    said, marked = out.getvalue(), to_markdown(verdict)
    for text in (said, marked):
        assert "Cost in USD per million output tokens, with 1 request in flight per route" in text
        assert all(number in text for number in cost_words.numbers(costs[0]))
        assert "\nlimits need 100 prompts" in text
    bare = decide(evidence_of(replayed(99, price=None)), policy(), rollout="r")
    assert "Cost" not in to_markdown(bare)


def test_limits_hold_at_whichever_look_a_run_ended(replayed, evidence_of) -> None:
    """Ten declared looks share the level: the limits are wider, at the same confidence."""
    rows = replayed()
    once = pooled(evidence_of(rows))
    sizes = " ".join(str(n) for n in range(10, 101, 10))
    for number, row in enumerate(rows):
        for arm in ("baseline", "candidate"):
            row[arm] |= {"look": number // 20 + 1, "looks": sizes}
    looked = pooled(evidence_of(rows))
    assert (looked.difference, looked.confidence) == (once.difference, once.confidence)
    ratio = (looked.upper - looked.lower) / (once.upper - once.lower)
    assert ratio == pytest.approx(2.5758 / 1.6449, rel=0.05)


def test_limits_hold_over_launches(replayed, evidence_of) -> None:
    """Launches that differ more than their requests widen the limits."""
    rows = replayed(300)
    narrow = pooled(evidence_of(rows))
    for number, row in enumerate(rows):
        for arm in ("baseline", "candidate"):
            row[arm]["launch"] = f"launch-{number // 100}"
        slower = 1 + 0.5 * (number // 100)
        row["candidate"]["e2e_s"] *= slower
    wide = pooled(evidence_of(rows))
    assert wide.upper - wide.lower > 3 * (narrow.upper - narrow.lower)


# --- prices as they are carried

hours = st.builds(
    RoutePrice,
    currency=st.just("USD"),
    per_accelerator_hour=st.floats(0, 1e6),
    accelerators=st.integers(1, 10_000),
)
tokens = st.builds(
    RoutePrice,
    currency=st.just("EUR"),
    per_million_input_tokens=st.floats(0, 1e6),
    per_million_cached_input_tokens=st.none() | st.floats(0, 1e6),
    per_million_output_tokens=st.floats(0, 1e6),
)


@given(hours | tokens)
def test_a_price_survives_its_text(price: RoutePrice) -> None:
    """What a generation carries gives the price back."""
    assert price_of(price.text) == price


@given(st.text() | st.recursive(st.none() | st.integers(), st.lists).map(json.dumps))
def test_any_other_text_is_a_value_error(text: str) -> None:
    """Never another exception: a stranger may have sent it."""
    with pytest.raises(ValueError):  # noqa: PT011  # whatever its words
        price_of(text)


@pytest.mark.parametrize(
    "document",
    [
        {"per_accelerator_hour": -1.0},
        {"per_accelerator_hour": 1.0, "per_million_output_tokens": 1.0},
        {"per_million_output_tokens": 1.0},
        {"accelerators": 2},
        {"per_accelerator_hour": 1.0, "accelerators": 0},
        {},
    ],
)
def test_an_impossible_price_is_none(document: dict[str, object]) -> None:
    """Neither kind, both kinds, half of one, and numbers that no price has."""
    with pytest.raises(ValueError, match="wanted"):
        price_of(json.dumps({"currency": "USD", **document}))


# --- the limits


def test_limits_err_as_often_as_they_say() -> None:
    """One-sided at 95 %: of 4,000 samples of skewed, correlated costs, 5 % have a limit beyond."""
    rng, n, runs, beyond = np.random.default_rng(20261123), 200, 4_000, [0, 0]
    for _ in range(runs):
        tokens = rng.integers(5, 60, n).astype(float)
        cost = 0.01 * tokens * rng.lognormal(0, 0.5, n) / math.exp(0.125)
        samples = [1.1 * cost, tokens, cost * rng.lognormal(0, 0.2, n) / math.exp(0.02), tokens]
        found = linear(lambda m: m[0] / m[1] - m[2] / m[3], samples)
        reach = limits(found.value, [(found.pulls, INDEPENDENT)], 0.95)
        assert reach is not None
        beyond[0] += reach.lower > 0.001
        beyond[1] += reach.upper < 0.001
    assert [count / runs for count in beyond] == pytest.approx([0.05, 0.05], abs=0.013)


def test_a_linear_statistic_is_exact() -> None:
    """The mean of differences has the textbook's standard error."""
    x, y = np.array([[1.0, 2.0, 4.0], [0.5, 0.1, 1.0]])
    found = linear(lambda m: m[0] - m[1], [x, y])
    reach = limits(found.value, [(found.pulls, INDEPENDENT)], 0.95)
    assert reach is not None
    d = x - y
    assert found.value == pytest.approx(d.mean())
    assert reach.upper - found.value == pytest.approx(1.6448536 * d.std(ddof=1) / math.sqrt(3))


@pytest.mark.parametrize("values", [[], [1.0]])
def test_one_value_has_no_limits(values: Sequence[float]) -> None:
    """A spread needs two."""
    assert over_groups(np.array(values), 0.95) is None
    assert limits(1.0, [(np.array(values), INDEPENDENT)], 0.95) is None


def test_values_that_do_not_vary_have_no_limits() -> None:
    """No spread was seen, which is no proof that there is none."""
    same = linear(lambda m: m[0] / m[1], [np.ones(5), np.full(5, 2.0)])
    assert limits(same.value, [(same.pulls, INDEPENDENT)], 0.95) is None
