"""Unpaired shares and means, rates of rare events, and ratios of sums."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest, bootstrap, norm, ttest_ind
from statsmodels.stats.proportion import test_proportions_2indep as statsmodels_score
from statsmodels.stats.rates import test_poisson_2indep as statsmodels_poisson

from evals.stats import Insufficient, Interval, welch
from evals.stats.dependence import INDEPENDENT, both, of_clusters
from evals.stats.hazard_ratio import hazard_ratio
from evals.stats.ratio_of_sums import ratio_of_sums
from evals.stats.score_difference import METHOD, score, unpaired_difference


def shares(candidate, baseline, *, margin=-0.02, level=0.95, bound="min"):
    found = unpaired_difference(candidate, baseline, margin=margin, bound=bound, confidence=level)
    assert isinstance(found, Interval)
    return found


# --- Miettinen and Nurminen


@pytest.mark.parametrize(
    ("candidate", "baseline", "lower", "upper"),
    [
        # Newcombe, Statistics in Medicine 17 (1998) 873-890, table II, method 6: 95 % limits.
        ((56, 70), (48, 80), 0.0528, 0.3382),
        ((9, 10), (3, 10), 0.1700, 0.8406),
        ((6, 7), (2, 7), 0.0342, 0.8534),
        ((5, 56), (0, 29), -0.0326, 0.1933),
        ((0, 10), (0, 20), -0.1658, 0.2844),
        ((0, 10), (0, 10), -0.2879, 0.2879),
        ((10, 10), (0, 20), 0.7156, 1.0),
        ((10, 10), (0, 10), 0.6636, 1.0),
    ],
)
def test_reproduces_newcombes_table(candidate, baseline, lower, upper) -> None:
    """All eight published examples come out to the printed digit, empty cells included."""
    found = shares(candidate, baseline, level=0.975)
    assert (round(found.lower, 4), round(found.upper, 4)) == (lower, upper)
    assert found.method == METHOD


def test_score_at_no_difference_is_statsmodels() -> None:
    """At 0 the p value is statsmodels'; elsewhere its shares do not maximise the likelihood."""
    oracle = statsmodels_score(
        82, 100, 90, 100, value=0, compare="diff", method="score", alternative="smaller"
    )
    assert shares((82, 100), (90, 100), margin=0).p_fail == pytest.approx(oracle.pvalue)


@given(st.integers(0, 9), st.integers(0, 14), st.floats(-0.6, 0.6))
def test_score_uses_the_constrained_likelihood(x1, x0, difference) -> None:
    """The closed cubic is the maximum that a search finds."""
    n1, n0 = 9, 14
    low, high = max(0.0, -difference), min(1.0, 1 - difference)

    def minus(p0: float) -> float:
        parts = ((x1, p0 + difference), (n1 - x1, 1 - p0 - difference), (x0, p0), (n0 - x0, 1 - p0))
        return -sum(k * math.log(max(p, 1e-300)) for k, p in parts if k)

    options = {"xatol": 1e-12}
    best = minimize_scalar(minus, bounds=(low, high), method="bounded", options=options).x
    p0 = min((low, best, high), key=minus)
    p1 = p0 + difference
    variance = (p1 * (1 - p1) / n1 + p0 * (1 - p0) / n0) * 23 / 22
    excess = x1 / n1 - x0 / n0 - difference
    if variance > 1e-6:
        assert score((x1, n1), (x0, n0), difference) == pytest.approx(
            excess / math.sqrt(variance), abs=1e-3
        )


arms = st.tuples(st.integers(0, 60), st.integers(1, 60)).filter(lambda a: a[0] <= a[1])


@given(arms, arms)
def test_swapping_the_arms_negates(candidate, baseline) -> None:
    """Exchanging the arms mirrors the interval, which always contains the estimate."""
    found, swapped = shares(candidate, baseline), shares(baseline, candidate)
    assert (found.lower, found.upper) == pytest.approx((-swapped.upper, -swapped.lower), abs=1e-8)
    assert -1 <= found.lower <= found.estimate <= found.upper <= 1


@given(arms, arms, st.floats(-0.9, 0.9), st.floats(-0.9, 0.9))
def test_p_falls_as_the_margin_tightens(candidate, baseline, one, other) -> None:
    """A tighter margin never makes failing less likely."""
    looser, tighter = sorted((one, other))
    p_loose = shares(candidate, baseline, margin=looser).p_fail
    assert shares(candidate, baseline, margin=tighter).p_fail <= p_loose + 1e-9


def test_limit_and_p_value_agree() -> None:
    """At the lower limit the statistic is the normal quantile."""
    found = shares((170, 200), (300, 330))
    assert score((170, 200), (300, 330), found.lower) == pytest.approx(norm.ppf(0.95))


def test_an_empty_arm_or_impossible_counts() -> None:
    """No answers are no evidence; more successes than answers are a mistake."""
    found = unpaired_difference((0, 0), (3, 9), margin=-0.1, bound="min", confidence=0.95)
    assert found == Insufficient(reason="an arm has no answers", n=0, n_needed=None)
    with pytest.raises(ValueError, match="got 5 of 4"):
        shares((5, 4), (1, 4))


# --- Welch


def test_welch_is_scipys() -> None:
    """Estimate, limits and p value are those of scipy's unequal-variance test."""
    rng = np.random.default_rng(4)
    c, b = rng.beta(8, 2, 300), rng.beta(9, 2, 210)
    found = welch.mean_difference(c, b, margin=-0.02, bound="min", confidence=0.95)
    limits = ttest_ind(c, b, equal_var=False).confidence_interval(0.90)
    oracle = ttest_ind(c + 0.02, b, equal_var=False, alternative="less")
    assert found == Interval(
        estimate=pytest.approx(c.mean() - b.mean()),
        lower=pytest.approx(limits.low),
        upper=pytest.approx(limits.high),
        p_fail=pytest.approx(oracle.pvalue),
        n=210,
        method=welch.METHOD,
    )


def test_welch_without_spread_or_answers() -> None:
    """One answer an arm, and answers that are all alike, have no limits."""
    one, many = np.array([0.5]), np.full(9, 0.5)
    kwargs = {"margin": -0.02, "bound": "min", "confidence": 0.95}
    assert welch.mean_difference(one, many, **kwargs) == Insufficient(
        reason="a spread needs two answers an arm", n=1, n_needed=2
    )
    assert isinstance(welch.mean_difference(many, many, **kwargs), Insufficient)


def test_weights_repeat_values() -> None:
    """A weight of two is the value twice, as far as the mean goes."""
    c, b = np.array([0.2, 0.9, 0.4]), np.array([0.1, 0.5, 0.7])
    weighted = welch.mean_difference(
        c, b, weights=(np.array([2.0, 1, 1]), np.ones(3)), margin=0, bound="min", confidence=0.95
    )
    assert weighted.estimate == pytest.approx(np.mean([0.2, 0.2, 0.9, 0.4]) - b.mean())


# --- rates of rare events


@pytest.mark.parametrize(("x1", "x0"), [(12, 9), (0, 4), (30, 11)])
def test_hazard_ratio_is_statsmodels_conditional_test(x1, x0) -> None:
    """The p value at 1.5 is statsmodels' exact conditional one."""
    found = hazard_ratio((x1, 40_000), (x0, 50_000), margin=1.5, bound="max", confidence=0.95)
    oracle = statsmodels_poisson(
        x1, 40_000, x0, 50_000, value=1.5, method="exact-cond", compare="ratio",
        alternative="larger",
    )  # fmt: skip
    assert found.p_fail == pytest.approx(oracle.pvalue)
    assert found.estimate == pytest.approx(x1 / 40_000 * 50_000 / x0)


def test_hazard_ratio_limits_are_clopper_and_pearsons() -> None:
    """Breast cancer after fluoroscopy, 41 in 28,010 and 15 in 19,017 woman-years: ratio 1.86."""
    found = hazard_ratio((41, 28_010), (15, 19_017), margin=1, bound="max", confidence=0.975)
    share = binomtest(41, 56).proportion_ci(0.95, method="exact")
    lower, upper = (p / (1 - p) * 19_017 / 28_010 for p in (share.low, share.high))
    assert (found.lower, found.upper) == pytest.approx((lower, upper))
    assert round(found.estimate, 3) == 1.856


def test_hazard_ratio_without_events() -> None:
    """No event bounds nothing; none in the control leaves the ratio open above."""
    kwargs = {"margin": 1.5, "bound": "max", "confidence": 0.95}
    assert isinstance(hazard_ratio((0, 100), (0, 100), **kwargs), Insufficient)
    assert isinstance(hazard_ratio((0, 0), (1, 100), **kwargs), Insufficient)
    some = hazard_ratio((4, 100), (0, 100), **kwargs)
    assert (some.estimate, some.upper) == (None, None)
    assert some.lower == pytest.approx(0.05**0.25 / (1 - 0.05**0.25))
    assert hazard_ratio((0, 100), (4, 100), **kwargs).lower == 0


# --- ratios of sums


def sums(numerators, denominators, clusters, **kwargs):
    def effect_of(values):
        return both(INDEPENDENT, of_clusters(values, clusters))

    return ratio_of_sums(
        numerators, denominators, effect_of=effect_of, margin=1.05, bound="max", confidence=0.95,
        **kwargs,
    )  # fmt: skip


def test_ratio_of_sums_agrees_with_the_bootstrap() -> None:
    """Limits are those of scipy's paired percentile bootstrap, but for its noise."""
    rng = np.random.default_rng(8)
    base = rng.gamma(3, 40, 600)
    cand = base * rng.lognormal(0.02, 0.3, 600)
    found = sums([cand], [base], np.arange(600))
    oracle = bootstrap(
        (cand, base), lambda x, y, axis: x.sum(axis) / y.sum(axis), paired=True, vectorized=True,
        n_resamples=4000, confidence_level=0.90, method="percentile", rng=rng,
    ).confidence_interval  # fmt: skip
    assert found.estimate == pytest.approx(cand.sum() / base.sum())
    assert (found.lower, found.upper) == pytest.approx((oracle.low, oracle.high), rel=0.004)


def test_repeats_are_one_cluster() -> None:
    """Every pair written four times under its own prompt leaves limits and p value as they were."""
    rng = np.random.default_rng(9)
    c, b = rng.gamma(2, 1, 80), rng.gamma(2, 1, 80)
    once = sums([c], [b], np.arange(80))
    four = sums([np.repeat(c, 4)], [np.repeat(b, 4)], np.repeat(np.arange(80), 4))
    wanted = (once.lower, once.upper, once.p_fail)
    assert (four.lower, four.upper, four.p_fail) == pytest.approx(wanted)


@settings(max_examples=30)
@given(st.integers(0, 999), st.permutations(range(30)))
def test_rates_invert_and_do_not_depend_on_order(seed, order) -> None:
    """Cost a token: exchanged arms give the inverse ratio and limits, in any order."""
    rng = np.random.default_rng(seed)
    cost_c, tokens_c, cost_b, tokens_b = rng.gamma(2, 1, (4, 30)) + 0.1
    found = sums([cost_c, tokens_b], [tokens_c, cost_b], np.arange(30), factor=2.0)
    i = np.array(order)
    swapped = sums([cost_b[i], tokens_c[i]], [tokens_b[i], cost_c[i]], np.arange(30), factor=0.5)
    assert found.estimate == pytest.approx(1 / swapped.estimate)
    assert (found.lower, found.upper) == pytest.approx((1 / swapped.upper, 1 / swapped.lower))


def test_sums_without_evidence() -> None:
    """No pair, one pair, zero sums and identical ratios have no limits."""
    x = np.array([1.0, 2.0, 3.0])
    assert isinstance(sums([x[:0]], [x[:0]], np.arange(0)), Insufficient)
    assert isinstance(sums([x[:1]], [x[:1]], np.arange(1)), Insufficient)
    assert isinstance(sums([x * 0], [x], np.arange(3)), Insufficient)
    assert isinstance(sums([x * 2], [x], np.arange(3)), Insufficient)
    with pytest.raises(ValueError, match="finite"):
        sums([np.array([1, np.inf, 2])], [x], np.arange(3))
