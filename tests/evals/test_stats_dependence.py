"""Design effects of neighbours in time and of clusters; stretches of rare harm."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.signal import lfilter

from evals.stats import Insufficient, Interval
from evals.stats.dependence import INDEPENDENT, Effect, both, in_time, joined, of_clusters
from evals.stats.stretches import draws, needed, widened
from evals.stats.tango import paired_difference


def autoregressive(rng, n, phi):
    """Return a stationary series of unit variance whose lag-1 correlation is phi."""
    noise = rng.normal(size=n + 500)
    return lfilter([1], [1, -phi], noise)[500:] * np.sqrt(1 - phi**2)


# --- neighbours in time


@pytest.mark.parametrize(("phi", "wanted"), [(0.0, 1.0), (0.5, 3.0), (0.9, 19.0)])
def test_the_effect_is_the_series_own(phi, wanted) -> None:
    """An autoregressive series of phi has (1 + phi)/(1 - phi); independent values have 1."""
    rng = np.random.default_rng(3)
    found = [in_time(autoregressive(rng, 5_000, phi)) for _ in range(60)]
    assert np.median([effect.ratio for effect in found]) == pytest.approx(wanted, rel=0.25)


def test_independent_values_are_seldom_suspected() -> None:
    """At most one series in eight is taken as dependent, and few are proved so."""
    rng = np.random.default_rng(5)
    found = [in_time((rng.random(2_000) < 0.05).astype(float)) for _ in range(400)]
    assert np.mean([effect.batches is not None for effect in found]) <= 0.125
    assert np.mean([effect.proved for effect in found]) <= 0.01


def test_bursts_at_random_starts_have_an_effect_of_their_length() -> None:
    """Spells of twenty are about one draw each."""
    rng = np.random.default_rng(7)
    slow = np.zeros(10_000)
    for start in rng.integers(0, 9_980, 40):
        slow[start : start + 20] = 1
    effect = in_time(slow)
    assert effect.proved
    assert 12 < effect.ratio < 30


def test_cohorts_that_ran_one_after_the_other_are_no_dependence() -> None:
    """Only what varies within a cohort counts."""
    rng = np.random.default_rng(9)
    cohort = np.repeat([0, 1, 2], 1_000)
    values = rng.normal(size=3_000) + 5 * cohort
    assert in_time(values).ratio > 100
    assert in_time(values, cohort).ratio < 1.6


def test_a_series_that_never_forgets_is_doubted() -> None:
    """Where the longest batches still follow each other, the limits say that they may be short."""
    walk = np.cumsum(np.random.default_rng(1).normal(size=400))
    effect = in_time(walk)
    assert effect.doubt is not None
    assert INDEPENDENT.doubt is None


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 1.0, 0.0], [2.0] * 100])
def test_too_little_to_tell(values) -> None:
    """Fewer than four values, and values that do not vary, have no effect."""
    assert in_time(np.array(values)) == INDEPENDENT


@example([-0.3551743766070471] * 2 + [0.5859375] * 2)  # 4.000000000000001 without a bound
@given(st.lists(st.floats(-1, 1), min_size=4, max_size=300))
def test_an_effect_is_finite_and_at_least_one(values) -> None:
    """Whatever the values are."""
    effect = in_time(np.array(values))
    assert 1 <= effect.ratio <= len(values)


def test_the_limits_of_few_batches_reach_further() -> None:
    """Student's t with 8 batches in place of the normal law, in limits and in p values."""
    effect = Effect(2.0, batches=8)
    assert effect.confidence(0.95) == pytest.approx(0.9709, abs=2e-4)  # Φ(1.8946)
    interval = Interval(estimate=0, lower=-1, upper=1, p_fail=0.025, n=9, method="m")
    found = effect.with_students_p(interval)
    assert isinstance(found, Interval)
    assert found.p_fail == pytest.approx(0.0454, abs=2e-4)  # t(7) beyond 1.96
    assert INDEPENDENT.with_students_p(interval) == interval


def test_what_one_arm_missed_counts_for_both() -> None:
    """A proved effect is both arms'; one that is not proved stays its arm's."""
    slow = Effect(20.0, 25, proved=True)
    assert joined(slow, INDEPENDENT) == (slow, slow)
    perhaps = Effect(1.3, 50)
    assert joined(perhaps, INDEPENDENT) == (perhaps, INDEPENDENT)


# --- clusters


def test_the_effect_of_repeats() -> None:
    """Five equal repeats of a prompt are one draw; independent ones are five; pairs alone are 1."""
    rng = np.random.default_rng(2)
    prompts = np.repeat(np.arange(800), 5)
    same = np.repeat(rng.normal(size=800), 5)
    assert of_clusters(same, prompts) == pytest.approx(5 * 800 / 799 * 3999 / 4000)
    assert of_clusters(rng.normal(size=4_000), prompts) == pytest.approx(1, abs=0.2)
    assert of_clusters(same, np.arange(4_000)) == 1
    assert both(Effect(3.0, 50), 2.2).ratio == pytest.approx(4.2)
    assert both(INDEPENDENT, 0.4).ratio == 1


# --- stretches


def limits(gained, lost, n):
    return lambda confidence: paired_difference(
        gained, lost, n, margin=-0.02, bound="min", confidence=confidence
    )


def with_stretch(differences, stretch):
    gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
    found = widened(
        limits(gained, lost, len(differences)),
        differences,
        stretch,
        margin=-0.02,
        bound="min",
        confidence=0.95,
    )
    assert isinstance(found, Interval)
    return found


def test_no_event_proves_three_stretches_over_n_and_no_less() -> None:
    """Without a loss in 2,000 requests, stretches of 25 may have a rate of 3.7 %."""
    none = np.zeros(2_000)
    assert with_stretch(none, 25).lower == pytest.approx(-2.996 * 25 / 2_000, rel=0.01)
    assert with_stretch(none, 1).lower == pytest.approx(-2.996 / 2_000, rel=0.1)
    assert needed(25, 0.01, 0.05) == 7_452


def test_a_longer_stretch_never_narrows() -> None:
    """Limits grow with the stretch, and p values with them."""
    rng = np.random.default_rng(4)
    differences = rng.choice([-1.0, 0.0, 1.0], p=[0.03, 0.95, 0.02], size=3_000)
    found = [with_stretch(differences, stretch) for stretch in (1, 5, 25, 100)]
    assert [f.lower for f in found] == sorted((f.lower for f in found), reverse=True)
    assert [f.upper for f in found] == sorted(f.upper for f in found)
    assert [f.p_fail for f in found] == sorted(f.p_fail for f in found)


def test_a_stretch_leaves_fewer_draws() -> None:
    """Values are worth n draws at a stretch of 1, over n/stretch of them at a longer one."""
    none = np.zeros(2_000)
    assert draws(none, INDEPENDENT, 1, 0.95) == 2_000
    assert draws(none, Effect(4.0, 50), 1, 0.95) == 500
    assert 2_000 / 25 * 0.7 < draws(none, INDEPENDENT, 25, 0.95) < 2_000 / 25 * 1.1


def test_nothing_to_widen() -> None:
    """No pairs stay no limits."""
    none = widened(limits(0, 0, 0), np.zeros(0), 25, margin=-0.02, bound="min", confidence=0.95)
    assert isinstance(none, Insufficient)
