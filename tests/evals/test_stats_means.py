"""The geometric-mean ratio and the mean of bounded differences."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from evals.stats import Insufficient, Interval, hall, log_ratio


def geomean(log_ratios, margin=1.0):
    return log_ratio.geometric_mean_ratio(
        np.asarray(log_ratios, dtype=float), margin=margin, bound="max", confidence=0.95
    )


def mean(differences, margin=-0.02):
    return hall.mean_difference(
        np.asarray(differences, dtype=float), margin=margin, bound="min", confidence=0.95
    )


def test_geometric_mean_is_scipys_t_test() -> None:
    """Estimate, limits and p value are those of the one-sample t test on the log scale."""
    values = np.random.default_rng(5).normal(-0.1, 0.3, 80)
    found = geomean(values, margin=0.95)
    oracle = ttest_1samp(values, math.log(0.95), alternative="greater")
    two_sided = ttest_1samp(values, 0).confidence_interval(0.90)
    assert found == Interval(
        estimate=pytest.approx(math.exp(values.mean())),
        lower=pytest.approx(math.exp(two_sided.low)),
        upper=pytest.approx(math.exp(two_sided.high)),
        p_fail=pytest.approx(oracle.pvalue),
        n=80,
        method=log_ratio.METHOD,
    )


@given(st.lists(st.floats(-2, 2), min_size=3, max_size=50).filter(lambda v: np.std(v) > 1e-3))
def test_swapping_the_arms_inverts_the_ratio(values) -> None:
    """Exchanged arms give the inverse ratio and limits, in any order of the pairs."""
    found, swapped = geomean(values), geomean([-v for v in reversed(values)])
    assert swapped.estimate == pytest.approx(1 / found.estimate)
    assert (swapped.lower, swapped.upper) == pytest.approx((1 / found.upper, 1 / found.lower))


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([], Insufficient(reason="a spread needs two pairs", n=0, n_needed=2)),
        ([0.1], Insufficient(reason="a spread needs two pairs", n=1, n_needed=2)),
        ([0.1, 0.1, 0.1], Insufficient(reason="the ratios do not vary", n=3, n_needed=None)),
    ],
)
def test_no_spread_gives_no_ratio(values, wanted) -> None:
    """No pair, one pair and identical pairs are not evidence."""
    assert geomean(values) == wanted


def test_infinite_ratios_are_refused() -> None:
    """A failed request has no place in a geometric mean."""
    with pytest.raises(ValueError, match="finite"):
        geomean([0.1, math.inf])


def test_hall_follows_its_formula() -> None:
    """The statistic at either limit is the t quantile, and the p value is its tail."""
    d = np.round(np.random.default_rng(3).beta(8, 1, 200) - 0.9, 6)
    found = mean(d)
    n, s = len(d), d.std(ddof=1)
    g = ((d - d.mean()) ** 3).mean() / d.std() ** 3

    def statistic(m: float) -> float:
        w = (d.mean() - m) / s
        return math.sqrt(n) * (w + g * w**2 / 3 + g**2 * w**3 / 27 + g / (6 * n))

    assert statistic(found.lower) == pytest.approx(student.ppf(0.95, n - 1))
    assert statistic(found.upper) == pytest.approx(-student.ppf(0.95, n - 1))
    assert found.p_fail == pytest.approx(student.cdf(statistic(-0.02), n - 1))
    assert found.method == hall.METHOD


def test_symmetric_differences_are_students() -> None:
    """Without skewness the limits are those of the plain t test."""
    d = np.array([-0.2, -0.1, 0.0, 0.1, 0.2] * 40)
    plain = ttest_1samp(d, 0).confidence_interval(0.90)
    found = mean(d)
    assert (found.lower, found.upper) == pytest.approx((plain.low, plain.high))


differences = st.lists(st.floats(-1, 1), min_size=10, max_size=60).filter(
    lambda v: np.std(v) > 1e-3
)


@given(differences)
def test_swapping_the_arms_negates_the_mean(values) -> None:
    """Exchanged arms mirror the interval, in any order of the pairs."""
    found, swapped = mean(values), mean([-v for v in reversed(values)])
    assert swapped.estimate == pytest.approx(-found.estimate)
    assert (swapped.lower, swapped.upper) == pytest.approx((-found.upper, -found.lower))


@given(differences, st.floats(-0.5, 0.5), st.floats(-0.5, 0.5))
def test_hall_is_monotone_in_the_margin(values, one, other) -> None:
    """A tighter margin never makes failing less likely."""
    looser, tighter = sorted((one, other))
    assert mean(values, tighter).p_fail <= mean(values, looser).p_fail + 1e-12


def test_identical_scores_are_bounded_by_what_was_not_seen() -> None:
    """200 ties bound the mean difference by the share that 200 draws could have missed."""
    share = 1 - 0.05 ** (1 / 200)
    assert mean([0.0] * 200) == Interval(
        estimate=0.0,
        lower=pytest.approx(-share),
        upper=pytest.approx(share),
        p_fail=1.0,
        n=200,
        method=hall.METHOD_CONSTANT,
    )
    assert mean([-1.0] * 200).p_fail == pytest.approx(0.0)
    assert mean([]) == Insufficient(reason="a spread needs two pairs", n=0, n_needed=2)


def test_scores_out_of_range_are_refused() -> None:
    """A difference beyond [-1, 1] is a caller's mistake."""
    with pytest.raises(ValueError, match="in \\[-1, 1\\]"):
        mean([0.0, 1.5])
