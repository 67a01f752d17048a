"""Adjust outcomes for covariates of the requests, which narrows the limits."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST_A_COLUMN = 40
"""Values are adjusted only with at least this many values per covariate."""


class Adjusted(NamedTuple):
    """One arm's values, adjusted to average requests."""

    values: Floats
    gain: float
    """Variance before / variance after, corrected for the fitted coefficients; at least 1."""


def adjusted(values: Floats, covariates: Floats, centre: Floats) -> Adjusted:
    """Return values minus the part that covariates explain, at the covariates' mean over both arms.

    `covariates` has one row per value and was known before an arm was chosen; `centre` is its mean
    over the requests of both arms. y − (x − centre)·β with β the arm's own least squares: the
    difference of two arms' means is then unbiased to first order whatever the true relation, and
    asymptotically no wider than without. With too few values, or covariates that explain nothing,
    the values are returned unchanged.

    Source: W. Lin, Annals of Applied Statistics 7 (2013) 295–318.
    """
    n, columns = covariates.shape
    if columns == 0 or n < LEAST_A_COLUMN * columns:
        return Adjusted(values, 1.0)
    design = np.column_stack((np.ones(n), covariates - centre))
    slopes = np.linalg.lstsq(design, values, rcond=None)[0][1:]
    better = values - (covariates - centre) @ slopes
    before, after = float(np.var(values, ddof=1)), float(np.var(better, ddof=1))
    spent = (n - 1) / (n - 1 - columns)
    if after <= 1e-12 * before or before <= after * spent:
        return Adjusted(values, 1.0)
    return Adjusted(better, before / (after * spent))
