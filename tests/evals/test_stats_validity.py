"""Sample ratio and drift."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare, mannwhitneyu, norm, spearmanr

from benchmarks.simulation.dependent_laws import autoregressive
from evals.stats.dependence import in_time
from evals.stats.drift import ArmSeries, candidate_later, paired_trend, unpaired_trend
from evals.stats.sample_ratio import mix_p, sample_ratio_p

# --- sample ratio


@pytest.mark.parametrize(("n_c", "n_b", "split"), [(480, 520, 0.5), (90, 910, 0.1), (0, 7, 0.5)])
def test_sample_ratio_is_the_chi_square(n_c, n_b, split) -> None:
    """The p value is scipy's, against the shares that the design says."""
    n = n_c + n_b
    oracle = chisquare([n_c, n_b], [n * split, n * (1 - split)]).pvalue
    assert sample_ratio_p(n_c, n_b, split=split) == pytest.approx(oracle)


def test_sample_ratio_of_bings_example() -> None:
    """821,588 against 815,482 users at an even split is p = 1.8e-6 (Kohavi et al. 2020, ch. 3)."""
    found = sample_ratio_p(815_482, 821_588)
    assert found == pytest.approx(1.8e-6, rel=0.02)
    assert found == pytest.approx(binomtest(815_482, 1_637_070, 0.5).pvalue, rel=0.01)


def test_no_requests_have_no_sample_ratio() -> None:
    """Nothing answered says nothing; one answer is no mismatch."""
    assert sample_ratio_p(0, 0) is None
    assert sample_ratio_p(1, 0) > 0.3
    with pytest.raises(ValueError, match="share between"):
        sample_ratio_p(1, 1, split=1)


def test_mix() -> None:
    """Equal mixes are quiet, shifted ones not; one cohort or an empty arm have none."""
    assert mix_p([50, 100, 0], [100, 200, 0]) == pytest.approx(1)
    assert mix_p([300, 100], [100, 300]) < 1e-9
    assert mix_p([9], [9]) is None
    assert mix_p([0, 0], [5, 4]) is None


# --- drift


def drift(d, t, strata=None):
    strata = np.zeros(len(d), dtype=np.int64) if strata is None else np.asarray(strata)
    trend = paired_trend(np.asarray(d, dtype=float), np.asarray(t, dtype=np.int64), strata)
    return trend and trend.p


def test_in_one_stratum_it_is_spearmans() -> None:
    """Its z is Spearman's correlation times the root of n - 1."""
    rng = np.random.default_rng(2)
    d, t = rng.normal(size=200), np.arange(200)
    rho = spearmanr(d, t).statistic
    found = paired_trend(d, t, np.zeros(200, dtype=np.int64))
    assert found.correlation == pytest.approx(rho)
    assert found.p == pytest.approx(2 * norm.sf(abs(rho) * np.sqrt(199)))


def test_strata_one_after_the_other_are_no_drift() -> None:
    """A cohort that gains more and ran later is not a trend; a trend inside each is."""
    rng = np.random.default_rng(3)
    strata = np.repeat([0, 1], 200)
    jump = rng.normal(size=400) + 5 * strata
    assert drift(jump, np.arange(400), strata) > 0.01
    assert drift(jump, np.arange(400)) < 1e-12
    assert drift(jump + np.arange(400) / 100, np.arange(400), strata) < 1e-3


@given(st.lists(st.floats(-5, 5), min_size=5, max_size=40), st.randoms(use_true_random=False))
def test_order_of_the_rows_and_of_the_arms_does_not_matter(d, random) -> None:
    """Shuffled rows and exchanged arms give the same p value."""
    t = list(range(len(d)))
    rows = t[:]
    random.shuffle(rows)
    plain = drift(d, t)
    other = drift([-d[i] for i in rows], rows)
    assert other == (pytest.approx(plain) if plain is not None else None)


def test_nothing_to_correlate() -> None:
    """No pair, one pair and equal differences have no trend."""
    assert drift([], []) is None
    assert drift([1.0], [1]) is None
    assert drift([1.0, 1.0], [1, 2]) is None
    assert drift([1.0, np.inf, 2.0], [1, 2, 3]) is not None


def test_which_arm_ran_later() -> None:
    """Interleaved arms are even, one after the other is 1, as Mann and Whitney count."""
    assert candidate_later(np.array([1, 3, 5]), np.array([0, 4, 2, 6])) == pytest.approx(0.5)
    assert candidate_later(np.array([5, 6]), np.array([1, 2])) == 1
    assert candidate_later(np.array([], dtype=int), np.array([1])) is None
    rng = np.random.default_rng(1)
    c, b = rng.integers(0, 50, 40), rng.integers(0, 60, 30)
    assert candidate_later(c, b) == pytest.approx(mannwhitneyu(c, b).statistic / 1200)


def arm(outcomes, strata=None):
    n = len(outcomes)
    strata = np.zeros(n, dtype=np.int64) if strata is None else np.asarray(strata)
    return ArmSeries(np.asarray(outcomes, dtype=float), np.arange(n), strata)


def test_a_trend_that_both_arms_share_is_no_drift() -> None:
    """A machine that slows down for both is fine; one arm alone that does is not."""
    rng = np.random.default_rng(4)
    slow, other = (np.arange(300) / 100 + rng.normal(size=300) for _ in range(2))
    assert unpaired_trend(arm(slow), arm(other)).p > 0.01
    alone = unpaired_trend(arm(slow), arm(rng.normal(size=300)))
    assert alone.p < 1e-6
    assert 0.4 < alone.correlation < 0.9
    assert unpaired_trend(arm([]), arm(slow)) is None
    assert unpaired_trend(arm([1.0]), arm(slow)) is None


@pytest.mark.slow
def test_interaction_holds_its_level() -> None:
    """Without a trend, one in a hundred tests is below .01."""
    rng = np.random.default_rng(5)
    strata = np.arange(120) % 3
    found = [
        unpaired_trend(arm(rng.normal(size=120), strata), arm(rng.exponential(size=120), strata)).p
        for _ in range(2_000)
    ]
    assert np.mean(np.array(found) < 0.01) < 0.01 + 3 * np.sqrt(0.01 * 0.99 / 2_000)


def test_neighbours_that_depend_on_each_other_are_no_drift() -> None:
    """A series whose neighbours correlate by .9 alarms hardly oftener than independent ones."""
    rng = np.random.default_rng(6)
    found = [_alarms(autoregressive(rng, 1_000, 0.9)) for _ in range(300)]
    assert np.mean(found) < 0.05
    assert np.mean([_alarms(rng.normal(size=1_000)) for _ in range(300)]) < 0.03


def test_drift_is_seen_through_dependence() -> None:
    """A trend of half the spread alarms, and so does a change in the middle."""
    rng = np.random.default_rng(7)
    slope, step = np.arange(2_000) / 2_000, np.arange(2_000) > 1_000
    for change in (slope, step):
        assert np.mean([_alarms(rng.normal(size=2_000) + change / 2) for _ in range(50)]) > 0.9


def _alarms(series) -> bool:
    times, one = np.arange(len(series)), np.zeros(len(series), dtype=np.int64)
    return paired_trend(series, times, one, in_time).p < 0.01
