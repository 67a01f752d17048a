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
