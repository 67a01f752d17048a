"""Tango's score interval against literature, brute force and its own laws."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binom, multinomial, norm

from evals.stats import Insufficient, Interval
from evals.stats.paired_exact import _nuisance, _Region, _signed_roots, loss_p
from evals.stats.tango import METHOD, _p_fail, paired_difference, score


def limits(gained: float, lost: float, n: float, *, margin: float = -0.1, level: float = 0.95):
    found = paired_difference(gained, lost, n, margin=margin, bound="min", confidence=level)
    assert isinstance(found, Interval)
    return found


@pytest.mark.parametrize(
    ("gained", "lost", "n", "level", "lower", "upper"),
    [
        # Airway hyper-responsiveness before and after transplantation (Bentur et al. 2009), as in
        # Fagerland, Lydersen and Laake (2014): 95 % limits -0.517 and -0.026.
        (1, 7, 21, 0.975, -0.517, -0.026),
        # R's PropCIs::scoreci.mp(25, 28, 618, 0.90): -0.0148 and 0.0247.
        (28, 25, 618, 0.95, -0.0148, 0.0247),
    ],
)
def test_reproduces_published_limits(gained, lost, n, level, lower, upper) -> None:
    """The limits of two published tables come out to the printed digit."""
    found = limits(gained, lost, n, level=level)
    digits = len(str(upper).split(".")[1])
    assert (round(found.lower, digits), round(found.upper, digits)) == (lower, upper)
    assert found.estimate == (gained - lost) / n
    assert found.method == METHOD


def test_nothing_discordant_has_the_closed_form() -> None:
    """Without a discordant pair the limits are ∓ z²/(n + z²)."""
    z2 = norm.ppf(0.95) ** 2
    found = limits(0, 0, 160)
    assert (found.lower, found.upper) == pytest.approx((-z2 / (160 + z2), z2 / (160 + z2)))


@pytest.mark.parametrize(("gained", "lost"), list(product((0, 1, 4, 9), (0, 2, 7))))
@pytest.mark.parametrize("difference", [-0.3, -0.02, 0.0, 0.15])
def test_score_is_the_constrained_likelihoods(gained, lost, difference) -> None:
    """The statistic uses the share that maximises the trinomial likelihood under Δ₀."""
    n = 30
    low, high = max(0.0, -difference), (1 - difference) / 2

    def minus_log_likelihood(p_lost: float) -> float:
        shares = (p_lost + difference, p_lost, 1 - 2 * p_lost - difference)
        counts = (gained, lost, n - gained - lost)
        terms = zip(counts, shares, strict=True)
        return -sum(k * math.log(max(p, 1e-300)) for k, p in terms if k)

    best = minimize_scalar(minus_log_likelihood, bounds=(low, high), method="bounded",
                           options={"xatol": 1e-12}).x  # fmt: skip
    p_lost = min((low, best, high), key=minus_log_likelihood)
    variance = n * (2 * p_lost + difference * (1 - difference))
    excess = gained - lost - n * difference
    wanted = (
        excess / math.sqrt(variance) if variance > 1e-12 else score(gained, lost, n, difference)
    )
    assert score(gained, lost, n, difference) == pytest.approx(wanted, abs=2e-4)


counts = st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 200)).filter(
    lambda c: sum(c) > 0
)


@given(counts, st.floats(-0.5, -0.001), st.floats(-0.5, -0.001))
def test_p_falls_as_the_margin_tightens(table, one, other) -> None:
    """A tighter margin never makes failing less likely."""
    gained, lost, rest = table
    looser, tighter = sorted((one, other))
    n = gained + lost + rest
    p_loose = limits(gained, lost, n, margin=looser).p_fail
    assert limits(gained, lost, n, margin=tighter).p_fail <= p_loose + 1e-12


@given(counts)
def test_swapping_the_arms_negates(table) -> None:
    """Exchanging candidate and baseline mirrors the interval."""
    gained, lost, rest = table
    n = gained + lost + rest
    found, swapped = limits(gained, lost, n), limits(lost, gained, n)
    assert found.estimate == -swapped.estimate
    assert (found.lower, found.upper) == pytest.approx((-swapped.upper, -swapped.lower), abs=1e-9)
    assert -1 <= found.lower <= found.estimate <= found.upper <= 1


@given(counts, st.floats(-0.5, -0.01))
def test_limit_and_p_value_agree(table, margin) -> None:
    """The lower limit is beyond the margin exactly if the test at the margin passes."""
    gained, lost, rest = table
    n = gained + lost + rest
    found = limits(gained, lost, n, margin=margin)
    z = score(gained, lost, n, margin)
    if abs(z - norm.ppf(0.95)) > 1e-6:
        assert (found.lower >= margin) == (z >= norm.ppf(0.95))
    if norm.cdf(z) > 0.25:
        assert found.p_fail == norm.cdf(z)
    else:
        assert found.p_fail <= 0.25


def fail_rate(n: int, loss: float, gain: float, level: float) -> float:
    """Enumerate the tables: the chance that p_fail is at most the level, at the margin."""

    def fails(gained: int, lost: int) -> bool:
        return _p_fail(gained, lost, n, -loss, "min") <= level

    total = 0.0
    for gained in range(int(binom.isf(1e-9, n, gain)) + 1):
        low, high = 0, n - gained + 1  # never fails at low; fails at high, or nowhere
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if fails(gained, middle) else (middle, high)
        chance = float(binom.pmf(gained, n, gain))
        total += chance * float(binom.sf(high - 1, n - gained, (gain + loss) / (1 - gain)))
    return total


@pytest.mark.parametrize("gain", [0.0, 0.0005, 0.002, 0.02])
@pytest.mark.parametrize(
    ("n", "level"), [(200, 0.05), (200, 0.0008), pytest.param(600, 0.0025, marks=pytest.mark.slow)]
)
def test_never_fails_more_often_than_its_level(n, gain, level) -> None:
    """With the loss at the margin a fail is as rare as it says, also in sparse tables."""
    assert fail_rate(n, 0.02, gain, level) <= level * (1 + 1e-6)


def test_the_normal_law_alone_would() -> None:
    """Tango's own p value fails 1.6 times as often as it says in the same enumeration."""
    lost = next(c for c in range(200) if norm.cdf(score(0, c, 300, -0.02)) <= 0.05)
    assert binom.sf(lost - 1, 300, 0.02) > 0.05 * 1.6
    assert limits(0, lost, 300, margin=-0.02).p_fail > 0.05


def signed_root(gained: int, lost: int, n: int, loss: float) -> float:
    """Return the likelihood ratio's signed root, its constrained maximum found by search."""
    counts = (gained, lost, n - gained - lost)

    def log_likelihood(*shares: float) -> float:
        return sum(k * math.log(max(p, 1e-300)) for k, p in zip(counts, shares, strict=True) if k)

    def at_loss(p: float) -> float:
        return log_likelihood(p - loss, p, 1 - 2 * p + loss)

    low, high = max(0.0, loss), (1 + loss) / 2
    options = {"xatol": 1e-12}
    best = minimize_scalar(
        lambda p: -at_loss(p), bounds=(low, high), method="bounded", options=options
    ).x
    constrained = max(at_loss(p) for p in (low, best, high))
    free = log_likelihood(*(k / n for k in counts))
    return math.copysign(math.sqrt(max(0.0, 2 * (free - constrained))), gained - lost + n * loss)


@pytest.mark.parametrize(
    ("seen", "loss"), [((1, 8), 0.05), ((0, 7), 0.05), ((5, 15), 0.02), ((9, 6), -0.2)]
)
def test_exact_p_is_the_enumerated_supremum(seen, loss) -> None:
    """The exact p value is that of a plain double sum over all tables and all of the hypothesis."""
    n = 40
    tables = [(b, c) for b in range(n + 1) for c in range(n + 1 - b)]
    root = signed_root(*seen, n, loss)
    bad = np.array([t for t in tables if signed_root(*t, n, loss) <= root + 1e-6])
    counts = np.column_stack([bad, n - bad.sum(axis=1)])

    def chance(gain: float, excess: float) -> float:
        return float(multinomial(n, [gain, gain + excess, 1 - 2 * gain - excess]).pmf(counts).sum())

    least = max(0.0, -loss)
    boundary = max(chance(g, loss) for g in np.linspace(least + 1e-6, (1 - loss) / 2 - 1e-6, 700))
    assert loss_p(*seen, n, loss) == pytest.approx(boundary, rel=1e-3, abs=2e-6)
    for excess in (loss - 0.03, loss - 0.15):
        gains = np.linspace(max(0.0, -excess) + 1e-6, max(0.0, -excess) + 0.3, 40)
        assert max(chance(g, excess) for g in gains) <= boundary


@pytest.mark.parametrize("n", [7, 25, 60, 120])
def test_exact_p_is_no_less_than_on_a_fine_grid(n) -> None:
    """No share gained of the hypothesis' boundary gives a higher chance than the p value."""
    rng = np.random.default_rng(n)
    for loss in (-0.05, -0.01, 0.0, 0.01, 0.05, 0.2):
        for _ in range(6):
            lost = int(rng.integers(1, n))
            gained = int(rng.integers(0, min(n - lost, lost) + 1))
            low, high = _nuisance(gained, n, max(0.0, -loss), (1 - loss) / 2)
            region = _Region.of(gained, lost, n, loss, (low, high))
            brute = region.chance(np.linspace(np.sqrt(low), np.sqrt(high), 2_000) ** 2).max()
            assert loss_p(gained, lost, n, loss) >= min(1.0, float(brute)) - 1e-9


@pytest.mark.parametrize(
    ("seen", "n", "loss"), [((10, 16), 226, 0.0), ((17, 30), 76, 0.01), ((4, 17), 25, -0.01)]
)
def test_exact_p_finds_the_highest_of_several_maxima(seen, n, loss) -> None:
    """Tables in which a coarse search would stop at a lower maximum, or beside the highest."""
    low, high = _nuisance(seen[0], n, max(0.0, -loss), (1 - loss) / 2)
    region = _Region.of(*seen, n, loss, (low, high))
    brute = float(region.chance(np.linspace(np.sqrt(low), np.sqrt(high), 20_000) ** 2).max())
    assert loss_p(*seen, n, loss) >= brute


@given(counts, st.floats(-0.4, 0.4))
def test_tables_are_ordered_alike_in_both_counts(table, loss) -> None:
    """One more pair lost never looks better, and one more gained never worse."""
    gained, lost, rest = table
    n = gained + lost + rest + 1
    seen = np.array([[gained, lost], [gained, lost + 1], [gained + 1, lost]])
    at, worse, better = _signed_roots(seen[:, 0], seen[:, 1], n, loss)
    assert worse <= at + 1e-6
    assert better >= at - 1e-6


def test_no_pairs_are_insufficient() -> None:
    """Without pairs there is no number."""
    found = paired_difference(0, 0, 0, margin=-0.1, bound="min", confidence=0.95)
    assert found == Insufficient(reason="no pairs", n=0, n_needed=None)


def test_one_pair_decides_nothing() -> None:
    """One pair, won or lost, leaves limits that contain every sensible margin."""
    assert limits(1, 0, 1).lower < -0.4
    assert limits(0, 1, 1).upper > 0.4
    assert not np.isnan(limits(0, 0, 1).lower)


def test_impossible_counts_are_refused() -> None:
    """More discordant pairs than pairs is a caller's mistake, not a number."""
    with pytest.raises(ValueError, match="wanted 0 ≤ gained"):
        limits(3, 3, 5)
