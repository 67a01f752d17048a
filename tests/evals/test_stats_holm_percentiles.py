"""Holm's correction and exact percentiles."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.stats.holm import adjusted
from evals.stats.percentiles import percentile


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_the_closure_of_bonferroni(p_values) -> None:
    """An adjusted p value is the largest Bonferroni p value of any subset that holds it."""
    indices = range(len(p_values))
    subsets = [s for size in indices for s in combinations(indices, size + 1)]
    wanted = [
        max(min(1.0, len(s) * min(p_values[j] for j in s)) for s in subsets if i in s)
        for i in indices
    ]
    assert adjusted(p_values) == pytest.approx(wanted)


def test_a_chain_of_margins_spends_its_level_once() -> None:
    """Two margins of one statistic count once while either is open, and each at its own rank."""
    found = adjusted([0.001, 0.01, 0.002, None], ["a", "a", "b", "c"])
    assert found == [0.003, 0.02, 0.006, None]
    assert adjusted([0.01, 0.02], ["a", "b"]) == adjusted([0.01, 0.02])


def test_chains_hold_the_family_level() -> None:
    """With six true nested hypotheses in three chains, a false rejection is as rare as promised."""
    rng = np.random.default_rng(6)
    wrong = 0
    for p in rng.random((20_000, 3)):
        looser = p + (1 - p) * 0.3  # the looser margin's p value is the larger
        found = adjusted([*p, *looser], ["a", "b", "c"] * 2)
        wrong += min(found) <= 0.05
    assert wrong / 20_000 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 20_000)


def test_missing_p_values_still_count_in_the_family() -> None:
    """A hypothesis without evidence makes the others no easier to reject."""
    assert adjusted([0.01, None, 0.02, None]) == [0.04, None, 0.06, None]
    assert adjusted([]) == []


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=50), st.floats(0, 1))
def test_percentile_is_numpys_linear_one(values, q) -> None:
    """Quantiles are R-7, numpy's `linear`."""
    found = percentile(np.array(values), q)
    assert found == pytest.approx(np.quantile(values, q, method="linear"))


def test_percentiles_at_the_edges() -> None:
    """None of nothing, the value of one, and infinity only where it carries weight."""
    assert percentile(np.array([]), 0.5) is None
    assert percentile(np.array([3.0]), 0.99) == 3.0
    assert percentile(np.array([1.0, 2.0, math.inf]), 0.5) == 2.0
    assert percentile(np.array([1.0, 2.0, math.inf]), 0.75) == math.inf
    assert percentile(np.array([math.inf, math.inf]), 0.5) == math.inf
    with pytest.raises(ValueError, match="NaN"):
        percentile(np.array([1.0, math.nan]), 0.5)
