"""Evidence that may be looked at while traffic flows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from benchmarks.simulation.looks import LOOKS, last_look, quantile_ratio_at_look
from evals.stats import Insufficient, Interval
from evals.stats.bets import Bets, log_e_path
from evals.stats.confidence_sequence import (
    BURN_IN,
    Traffic,
    boundary,
    mean_effect,
    pseudo_outcomes,
)
from evals.stats.sequential import over_looks, spent_levels
from evals.stats.spending import ever_passes, last_level

bounded = st.lists(st.floats(-1, 1), max_size=40).map(np.array)


# --- bets


def test_wealth_is_the_mean_of_the_products() -> None:
    """E is what 24 bettors with fixed stakes hold on average."""
    d = np.array([0.0, 1.0, -1.0, 0.5, 0.0])
    stakes = np.geomspace(0.01, 0.95, 24) / (1 - 0.02)
    wanted = np.mean([np.prod(1 + s * (d + 0.02)) for s in stakes])
    found = Bets.on_pass(0.02).after(d)
    assert math.exp(found.log_e) == pytest.approx(wanted)
    assert (found.n, len(found.log_wealth)) == (5, 24)


def test_no_pairs_are_no_evidence() -> None:
    """E is 1 before the first pair."""
    assert Bets.on_pass(0.02).log_e == pytest.approx(0)
    assert not Bets.on_fail(0.02).decides(0.05)


@given(bounded, bounded, st.randoms(use_true_random=False))
def test_shards_add_and_order_does_not_matter(one, other, random) -> None:
    """Two shards merged are the whole, whatever the order and wherever the restart."""
    whole = np.concatenate([one, other])
    mixed = list(whole)
    random.shuffle(mixed)
    start = Bets.on_pass(0.05)
    merged = start.after(one).merged(start.after(other))
    restarted = Bets(start.limit, start.after(one).log_wealth, len(one)).after(other)
    assert merged.n == restarted.n == len(whole)
    assert merged.log_wealth == pytest.approx(start.after(np.array(mixed)).log_wealth, abs=1e-9)
    assert restarted.log_wealth == pytest.approx(merged.log_wealth, abs=1e-9)
    assert (log_e_path(whole, -0.05)[-1] if len(whole) else 0) == pytest.approx(
        merged.log_e, abs=1e-9
    )


@given(bounded, st.floats(0, 0.4), st.floats(0, 0.4))
def test_a_wider_margin_bets_no_worse_on_a_pass(d, one, other) -> None:
    """Evidence for a pass never shrinks where more loss is acceptable."""
    tight, loose = sorted((one, other))
    assert Bets.on_pass(loose).after(d).log_e >= Bets.on_pass(tight).after(d).log_e - 1e-9


@given(st.integers(1, 400))
def test_e_is_fair_at_the_margin(n) -> None:
    """One more ±1 draw with its mean on the limit leaves E as it was on average: a martingale."""
    limit = -0.04
    p = (1 + limit) / 2
    history = Bets(limit).after(np.random.default_rng(n).choice([-1.0, 1.0], n))
    up = history.after(np.array([1.0])).log_e - history.log_e
    down = history.after(np.array([-1.0])).log_e - history.log_e
    assert p * math.exp(up) + (1 - p) * math.exp(down) == pytest.approx(1)


def test_clear_cases_decide() -> None:
    """A lossless candidate passes and a bad one fails, each on its own process."""
    same, bad = np.zeros(400), np.where(np.arange(400) % 5 == 0, 1.0, 0.0)
    assert Bets.on_pass(0.02).after(same).decides(0.05)
    assert not Bets.on_fail(0.02).after(same).decides(0.05)
    assert Bets.on_fail(0.02).after(bad).decides(0.05)
    assert not Bets.on_pass(0.02).after(-bad).decides(0.05)


def test_bets_refuse_what_they_cannot_cover() -> None:
    """Differences beyond 1 and shards of another margin are mistakes."""
    with pytest.raises(ValueError, match=r"in \[-1, 1\]"):
        Bets.on_pass(0.02).after(np.array([1.5]))
    with pytest.raises(ValueError, match="one limit"):
        Bets.on_pass(0.02).merged(Bets.on_pass(0.03))


# --- confidence sequence


def traffic(seed: int, n: int, effect: float = 0.0, split: float = 0.3) -> Traffic:
    rng = np.random.default_rng(seed)
    stratum = rng.integers(0, 3, n)
    arm = rng.random(n) < split
    p = np.array([0.5, 0.7, 0.9])[stratum] + effect * arm
    return Traffic((rng.random(n) < p).astype(float), arm, stratum, split)


def test_pseudo_outcomes_by_hand() -> None:
    """Each uses the means of the stratum's earlier requests only."""
    t = Traffic(
        outcome=np.array([1.0, 0.0, 1.0, 1.0]),
        to_candidate=np.array([True, False, True, False]),
        stratum=np.array([0, 0, 0, 1]),
        split=0.25,
    )
    # No past: 1/.25. Past candidate mean 1, no baseline: 1 - 0 - 0/.75. Means 1 and 0: 1 + 0.
    assert pseudo_outcomes(t) == pytest.approx([4.0, 1.0, 1.0, -1 / 0.75])


def test_the_effect_is_estimated_without_bias() -> None:
    """Over many rollouts the mean estimate is the effect, though the strata differ widely."""
    found = [mean_effect(traffic(s, 400, -0.1), margin=-0.02, confidence=0.95) for s in range(300)]
    estimates = [x.estimate for x in found if isinstance(x, Interval)]
    assert np.mean(estimates) == pytest.approx(-0.1, abs=4 * np.std(estimates) / math.sqrt(300))


def test_nothing_is_said_before_the_burn_in() -> None:
    """At 149 requests, at one and at none there are no limits."""
    for n in (0, 1, BURN_IN - 1):
        found = mean_effect(traffic(1, n), margin=-0.02, confidence=0.95)
        assert found == Insufficient(
            reason="the sequence speaks from 150 requests on", n=n, n_needed=150
        )


@given(st.integers(0, 50), st.floats(-0.5, 0.5))
def test_p_and_limit_agree(seed, margin) -> None:
    """The lower limit excludes the margin exactly where p is at most the level."""
    found = mean_effect(traffic(seed, 600, 0.05), margin=margin, confidence=0.95)
    if abs(found.p_fail - 0.05) > 1e-6:
        assert (found.lower > margin) == (found.p_fail < 0.05)
    assert found.lower <= found.estimate <= found.upper


def test_the_boundary_is_wider_than_one_look() -> None:
    """Looking always costs: the sequence lies outside the normal limit, and shrinks."""
    at = [boundary(t, 0.05) for t in (150, 1_000, 10_000)]
    assert at == sorted(at, reverse=True)
    assert all(b > 1.645 / math.sqrt(t) for b, t in zip(at, (150, 1_000, 10_000), strict=True))


# --- looks


def test_the_plan_spends_five_percent() -> None:
    """At the margin any look passes in .05, computed by recursion."""
    pairs, levels = zip(*LOOKS, strict=True)
    assert ever_passes(pairs, levels) == pytest.approx(0.05, abs=2e-5)
    assert last_level(pairs, levels[:-1], 0.05) == levels[-1]
    assert [last_look(n) and last_look(n).pairs for n in (299, 300, 599, 1_200, 9_999)] == [
        None, 300, 300, 1_200, 5_000
    ]  # fmt: skip


@pytest.mark.parametrize("pairs", [(300, 600, 1_200, 2_400, 5_000), (2_000, 2_001, 2_003, 5_000)])
def test_looks_spend_what_the_joint_normal_law_says(pairs: tuple[int, ...]) -> None:
    """The recursion agrees with a multivariate normal integral, near looks included."""
    levels = (0.001, 0.003, 0.006, 0.010, 0.030)[-len(pairs) :]
    n = np.array(pairs, dtype=float)
    correlation = np.sqrt(np.minimum.outer(n, n) / np.maximum.outer(n, n))
    law = multivariate_normal(np.zeros(len(n)), correlation, seed=1)
    assert ever_passes(pairs, levels) == pytest.approx(1 - law.cdf(norm.isf(levels)), abs=5e-5)


def test_one_look_spends_its_level_and_near_ones_at_most_their_sum() -> None:
    """One look is a plain test; looks too near to integrate count their sum."""
    assert ever_passes((500,), (0.05,)) == pytest.approx(0.05)
    assert last_level((500,), (), 0.05) == pytest.approx(0.05, rel=1e-3)
    assert ever_passes((10**8, 10**8 + 1), (0.01, 0.02)) == pytest.approx(0.03)
    assert last_level((10**8, 10**8 + 1), (0.01,), 0.05) == pytest.approx(0.04)


def test_between_looks_the_last_one_stands() -> None:
    """Pairs after the look change nothing until the next look."""
    rng = np.random.default_rng(3)
    c, b = rng.lognormal(0, 0.4, 700), rng.lognormal(0, 0.4, 700)

    def at(n: int):
        return quantile_ratio_at_look(c[:n], b[:n], q=0.95, margin=1.25, bound="max")

    assert at(300) == at(599)
    assert at(600) != at(599)
    assert at(700).n == 600
    assert at(299) == Insufficient(reason="the first look is at 300 pairs", n=299, n_needed=300)


def test_a_look_is_as_strict_as_its_level() -> None:
    """At 300 pairs and .001 a p99 has no limit yet: its rank does not exist."""
    rng = np.random.default_rng(3)
    c, b = rng.lognormal(0, 0.4, 700), rng.lognormal(0, 0.4, 700)
    found = quantile_ratio_at_look(c[:300], b[:300], q=0.99, margin=1.25, bound="max")
    assert (found.upper, found.lower) == (None, None)
    assert quantile_ratio_at_look(c, b, q=0.95, margin=1.25, bound="max").upper is not None


# --- levels and p values over declared looks

sizes = st.sampled_from([(7,), (1, 2), (3, 4, 50), (10, 20, 30, 40, 50, 60, 80, 100)])
powers = st.sampled_from([1.0, 1.5, 3.0])


@given(sizes, st.sampled_from([0.001, 0.05, 0.2]), powers)
def test_levels_spend_what_they_are_given(
    sizes: tuple[int, ...], total: float, power: float
) -> None:
    """By each look no more than its share of the total is spent, and by the last nearly all."""
    levels = spent_levels(sizes, total, power)
    for i, size in enumerate(sizes, start=1):
        spent = ever_passes(sizes[:i], levels[:i])
        assert spent <= total * (size / sizes[-1]) ** power * (1 + 1e-6)
    assert ever_passes(sizes, levels) == pytest.approx(total, rel=0.002)


@pytest.mark.parametrize("sizes", [(0, 1), (2, 2), (3, 1)])
def test_looks_without_new_pairs_are_refused(sizes: tuple[int, ...]) -> None:
    """A look judges more pairs than the one before."""
    with pytest.raises(ValueError, match="increasing numbers of pairs"):
        spent_levels(sizes, 0.05, 1.0)


@given(sizes, st.floats(1e-6, 0.4), powers, st.data())
def test_a_look_at_its_level_has_the_total_as_p_value(
    sizes: tuple[int, ...], total: float, power: float, data: st.DataObject
) -> None:
    """`over_looks` is the inverse of `spent_levels`."""
    look = data.draw(st.integers(0, len(sizes) - 1))
    level = spent_levels(sizes, total, power)[look]
    assert over_looks(level, look, sizes, power) == pytest.approx(total, rel=0.05)


@given(sizes, powers, st.floats(0, 1), st.floats(0, 1), st.data())
def test_p_values_over_looks_keep_their_order(
    sizes: tuple[int, ...], power: float, one: float, other: float, data: st.DataObject
) -> None:
    """They grow with the look's own p value, and are no smaller than it."""
    look = data.draw(st.integers(0, len(sizes) - 1))
    low, high = (over_looks(p, look, sizes, power) for p in sorted((one, other)))
    assert 0 <= low <= high <= 1
    assert low >= min(one, other) * (1 - 0.03) - 1e-12
