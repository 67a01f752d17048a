"""Exact sample percentiles."""

import math

import numpy as np
from numpy.typing import NDArray


def percentile(values: NDArray[np.float64], q: float) -> float | None:
    """Return the R-7 quantile: linear between order statistics at position (n − 1)·q from 0.

    `None` where n = 0; the value itself where n = 1. Infinite values are allowed: a position that
    falls exactly on a finite value is finite, any weight on an infinite one is infinite. NaN is an
    error: unknown values are left out before.

    Source: R. Hyndman and Y. Fan, The American Statistician 50 (1996) 361–365, definition 7.
    """
    if len(values) == 0:
        return None
    if np.isnan(values).any():
        raise ValueError("wanted no NaN among the values")
    return ordered_percentile(np.sort(values), q)


def ordered_percentile(ordered: NDArray[np.float64], q: float) -> float:
    """Return the R-7 quantile of at least one value, given in ascending order."""
    position = (len(ordered) - 1) * q
    low, weight = math.floor(position), position - math.floor(position)
    if weight == 0 or ordered[low] == ordered[low + 1]:
        return float(ordered[low])
    return float(ordered[low] + weight * (ordered[low + 1] - ordered[low]))
