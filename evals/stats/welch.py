"""Welch's t for a difference of two independent means."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from evals.stats.interval import Bound, Insufficient, Interval, exponential

METHOD = "welch-1947/1"
METHOD_RATIO = "welch-log-ratio/1"


def mean_difference(
    candidate: NDArray[np.float64],
    baseline: NDArray[np.float64],
    *,
    draws: tuple[float, float] | None = None,
    weights: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return mean(candidate) − mean(baseline) with limits from t at Welch's degrees of freedom.

    Unpaired; s² of each arm over its `draws` (candidate, baseline: clusters, where fewer than the
    values), ν = (a + b)²/(a²/(n_c − 1) + b²/(n_b − 1)) with a, b the two squared errors. With
    `weights`, means and variances are weighted. Each limit is one-sided at `confidence`. Fewer
    than two draws in an arm, or no spread in both, are `Insufficient`.

    Source: B. Welch, Biometrika 34 (1947) 28–35; with one draw a value and no weights,
    `scipy.stats.ttest_ind(equal_var=False)`.
    """
    n = (float(len(candidate)), float(len(baseline))) if draws is None else draws
    if min(n) < 2:
        return Insufficient(reason="a spread needs two answers an arm", n=int(min(n)), n_needed=2)
    w = (np.ones(len(candidate)), np.ones(len(baseline))) if weights is None else weights
    mean_c, a = _moments(candidate, w[0], n[0])
    mean_b, b = _moments(baseline, w[1], n[1])
    if a + b < 1e-24:
        return Insufficient(reason="the values do not vary", n=int(min(n)), n_needed=None)
    freedom = (a + b) ** 2 / (a * a / (n[0] - 1) + b * b / (n[1] - 1))
    error, difference = math.sqrt(a + b), mean_c - mean_b
    reach = float(student.ppf(confidence, freedom)) * error
    p_above = float(student.sf((difference - margin) / error, freedom))
    return Interval(
        estimate=difference,
        lower=difference - reach,
        upper=difference + reach,
        p_fail=p_above if bound == "max" else 1 - p_above,
        n=math.floor(min(n)),
        method=METHOD,
    )


def geometric_mean_ratio(
    candidate: NDArray[np.float64],
    baseline: NDArray[np.float64],
    *,
    draws: tuple[float, float],
    weights: tuple[NDArray[np.float64], NDArray[np.float64]],
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return the ratio of geometric means: the exponential of the difference of mean logarithms.

    Unpaired; values are > 0 and finite; otherwise as `mean_difference`.
    """
    logs = mean_difference(
        np.log(candidate),
        np.log(baseline),
        draws=draws,
        weights=weights,
        margin=math.log(margin),
        bound=bound,
        confidence=confidence,
    )
    return logs if isinstance(logs, Insufficient) else exponential(logs, METHOD_RATIO)


def _moments(
    values: NDArray[np.float64], weights: NDArray[np.float64], draws: float
) -> tuple[float, float]:
    """Return the weighted mean and its squared error at `draws` independent draws."""
    mean = float(np.average(values, weights=weights))
    variance = float(np.average((values - mean) ** 2, weights=weights)) * draws / (draws - 1)
    return mean, variance / draws
