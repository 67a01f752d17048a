"""The ratio of quantiles against scipy, its ranks, and its own laws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtrik
from scipy.stats import beta, quantile_test

from evals.stats import Insufficient, Interval
from evals.stats.quantile_ratio import (
    METHOD,
    _order_limit,
    minimum_n,
    quantile_ratio,
    unpaired_quantile_ratio,
)


def ratio(candidate, baseline, *, q=0.95, margin=1.25, draws=None, bound="max"):
    found = quantile_ratio(
        np.asarray(candidate, dtype=float),
        np.asarray(baseline, dtype=float),
        q=q,
        draws=(len(candidate),) * 2 if draws is None else draws,
        margin=margin,
        bound=bound,
        confidence=0.95,
    )
    assert isinstance(found, Interval)
    return found


def lognormal(seed: int, n: int, shift: float = 0.0):
    return np.random.default_rng(seed).lognormal(shift, 0.4, n)


def test_combines_the_one_arm_limits() -> None:
    """With arms that share nothing, MOVER combines the limits of each arm."""
    candidate, baseline = lognormal(1, 400), np.sort(lognormal(2, 400))
    candidate = np.sort(candidate)[::-1].copy()  # exceedances never coincide: correlation 0
    found = ratio(candidate, baseline, q=0.5)
    q_c, q_b = np.quantile(candidate, 0.5), np.quantile(baseline, 0.5)
    x = math.log(one_arm(candidate, 0.5, upper=True) / q_c)
    y = math.log(q_b / one_arm(baseline, 0.5, upper=False))
    assert found.estimate == pytest.approx(q_c / q_b)
    assert found.upper == pytest.approx(q_c / q_b * math.exp(math.hypot(x, y)), rel=1e-12)
    assert (found.n, found.method) == (400, METHOD)


def one_arm(values, q, *, upper, draws=None):
    return _order_limit(np.sort(values), draws or len(values), q, 0.05, upper=upper)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 999), st.integers(60, 900), st.sampled_from([0.5, 0.9, 0.95]))
def test_a_limit_lies_within_one_rank_of_scipys(seed, n, q) -> None:
    """Scipy's whole ranks never hold less than the level: the fractional one is just inside."""
    values = np.sort(lognormal(seed, n))
    for side, upper in (("less", True), ("greater", False)):
        tested = quantile_test(values, p=q, alternative=side).confidence_interval(0.95)
        theirs = np.searchsorted(values, tested.high if upper else tested.low)
        ours = one_arm(values, q, upper=upper)
        inner = values[theirs - 1] if upper else values[theirs + 1]
        low, high = (inner, values[theirs]) if upper else (values[theirs], inner)
        assert low * (1 - 1e-9) <= ours <= high * (1 + 1e-9)


@settings(deadline=None, max_examples=60)
@given(st.integers(60, 3000), st.sampled_from([0.5, 0.9, 0.95]), st.sampled_from([0.05, 0.01]))
def test_the_rank_is_hutsons(n, q, alpha) -> None:
    """The r-th of n uniform values is Beta(r, n + 1 − r), of which the quantile cuts off α."""
    ranks = np.exp(np.arange(1, n + 1) * 1e-3)  # the log of a value is its rank
    for upper, tail in ((True, alpha), (False, 1 - alpha)):
        limit = _order_limit(ranks, n, q, alpha, upper=upper)
        if limit is None:  # at 60 draws p95 has no rank at .01
            assert upper
            assert q**n > alpha
            continue
        rank = math.log(limit) * 1e3
        assert beta.cdf(q, rank, n + 1 - rank) == pytest.approx(tail, abs=1e-6)


@pytest.mark.parametrize(
    ("q", "n", "least"), [(0.5, 20, 0.04), (0.95, 70, 0.03), (0.95, 200, 0.04), (0.99, 400, 0.03)]
)
def test_a_limit_errs_as_often_as_it_says(q, n, least) -> None:
    """Over 20,000 samples of a long tail: at most .05 and three standard errors, and near it."""
    values = np.sort(np.random.default_rng(7).standard_exponential((20_000, n)), axis=1)
    truth = -math.log(1 - q)
    for upper in (True, False):
        limits = np.array([_order_limit(row, n, q, 0.05, upper=upper) for row in values])
        missed = np.mean(limits < truth if upper else limits > truth)
        assert least < missed < 0.0546


def test_beside_an_infinite_value_the_limit_is_safe() -> None:
    """Between a finite value and a failed request: unbounded above, the finite value below."""
    values = np.array([1.0] * 80 + [np.inf] * 20)
    places = [_order_limit(values, 100, 0.73, a, upper=True) for a in (0.5, 0.05, 0.001)]
    assert places == [1.0, np.inf, np.inf]
    rank = 1 + bdtrik(0.05, 100, 0.86)
    assert 80 < rank < 81
    assert _order_limit(values, 100, 0.86, 0.05, upper=False) == 1.0


@pytest.mark.parametrize(("q", "n"), [(0.5, 5), (0.95, 59), (0.99, 299)])
def test_no_limit_where_the_rank_does_not_exist(q, n) -> None:
    """One pair below the least n there is no upper limit; at it there is."""
    assert minimum_n(q, 0.95) == n
    below = ratio(lognormal(1, n - 1), lognormal(2, n - 1), q=q)
    assert (below.upper, below.lower) == (None, None)
    assert below.estimate is not None
    at = ratio(lognormal(1, n), lognormal(2, n), q=q)
    assert at.upper is not None
    assert at.lower is not None


def test_repeats_do_not_make_a_rank() -> None:
    """Four repeats of 40 prompts have no p95 limit: ranks come from the prompts."""
    assert ratio(lognormal(1, 160), lognormal(2, 160), draws=(40, 40)).upper is None


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(60, 200), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_swapping_inverts(seed, n, random) -> None:
    """Shuffled pairs give the same ratio; exchanged arms give its inverse."""
    candidate, baseline = lognormal(seed, n), lognormal(seed + 1, n)
    found = ratio(candidate, baseline)
    order = list(range(n))
    random.shuffle(order)
    shuffled = ratio(candidate[order], baseline[order])
    for name in ("estimate", "lower", "upper", "p_fail"):  # a sum in another order: the last digit
        assert getattr(shuffled, name) == pytest.approx(getattr(found, name), rel=1e-12)
    swapped = ratio(baseline, candidate)
    assert swapped.estimate == pytest.approx(1 / found.estimate)
    assert swapped.lower == pytest.approx(1 / found.upper)
    assert swapped.upper == pytest.approx(1 / found.lower)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.5, 2.0), st.floats(0.5, 2.0))
def test_p_falls_as_the_margin_tightens(seed, one, other) -> None:
    """A tighter margin never makes failing less likely."""
    candidate, baseline = lognormal(seed, 120), lognormal(seed + 1, 120)
    tighter, looser = sorted((one, other))
    p_loose = ratio(candidate, baseline, margin=looser).p_fail
    assert ratio(candidate, baseline, margin=tighter).p_fail <= p_loose + 1e-9


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.6, 1.8))
def test_limit_and_p_value_agree(seed, margin) -> None:
    """The lower limit excludes the margin exactly where p is at most 0.05."""
    found = ratio(lognormal(seed, 150, 0.2), lognormal(seed + 1, 150), margin=margin)
    assert (found.lower > margin) == (found.p_fail <= 0.05)


def test_failed_requests_are_infinite_not_dropped() -> None:
    """A few failures leave the quantile finite and higher; many leave no estimate and fail."""
    baseline = lognormal(2, 200)
    candidate = baseline.copy()
    candidate[:6] = np.inf
    few = ratio(candidate, baseline)
    assert few.estimate is not None
    assert few.estimate > 1
    assert few.upper is None
    candidate[:40] = np.inf
    many = ratio(candidate, baseline)
    assert (many.estimate, many.lower, many.upper) == (None, None, None)
    assert many.p_fail < 1e-3
    assert ratio(baseline, candidate).p_fail > 0.99


def test_both_arms_failing_says_nothing() -> None:
    """Where both quantiles are infinite there is neither an estimate nor a small p."""
    found = ratio([np.inf] * 100, [np.inf] * 100)
    assert (found.estimate, found.lower, found.upper, found.p_fail) == (None, None, None, 1.0)


def test_no_pairs_are_insufficient() -> None:
    """Without pairs there is no number."""
    empty = np.array([])
    found = quantile_ratio(
        empty, empty, q=0.95, draws=(0, 0), margin=1.2, bound="max", confidence=0.95
    )
    assert found == Insufficient(reason="no pairs", n=0, n_needed=None)


def test_one_pair_has_an_estimate_and_no_limits() -> None:
    """One pair is a ratio without any confidence."""
    found = ratio([2.0], [1.0])
    assert (found.estimate, found.lower, found.upper) == (2.0, None, None)


def test_bad_values_are_refused() -> None:
    """Zero seconds and unpaired samples are a caller's mistake, not a number."""
    with pytest.raises(ValueError, match="above 0"):
        ratio([0.0, 1.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="wanted pairs"):
        ratio([1.0], [1.0, 1.0])


def test_unpaired_arms_share_nothing() -> None:
    """Arms of different lengths combine their limits with a correlation of 0."""
    candidate, baseline = lognormal(1, 700), lognormal(2, 400)
    found = unpaired_quantile_ratio(
        candidate, baseline, q=0.9, draws=(700, 400), margin=1.2, bound="max", confidence=0.95
    )
    q_c, q_b = np.quantile(candidate, 0.9), np.quantile(baseline, 0.9)
    x = math.log(one_arm(candidate, 0.9, upper=True) / q_c)
    y = math.log(q_b / one_arm(baseline, 0.9, upper=False))
    assert isinstance(found, Interval)
    assert found.upper == pytest.approx(q_c / q_b * math.exp(math.hypot(x, y)), rel=1e-12)
    assert found.n == 400


def test_an_empty_arm_is_insufficient() -> None:
    """One arm alone has no ratio."""
    found = unpaired_quantile_ratio(
        lognormal(1, 9), np.array([]), q=0.9, draws=(9, 0), margin=1, bound="max", confidence=0.95
    )
    assert found == Insufficient(reason="an arm has no answers", n=0, n_needed=None)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 1000), st.integers(1, 700), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_never_a_finite_limit_without_its_rank(seed, n, q) -> None:
    """With fewer draws than the level needs there is no upper limit, whatever the values."""
    found = ratio(lognormal(seed, 700), lognormal(seed + 1, 700), q=q, draws=(n, n))
    assert (found.upper is not None) == (n >= minimum_n(q, 0.95))
