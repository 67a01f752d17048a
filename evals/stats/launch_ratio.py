"""A ratio's limits over launches of the servers, which hold for further launches too."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evals.stats.interval import Bound, Insufficient, Interval
from evals.stats.log_ratio import geometric_mean_ratio
from evals.stats.welch import mean_difference

METHOD = "t-over-launches/1"


def over_launches(
    log_ratios: NDArray[np.float64], *, margin: float, bound: Bound, confidence: float
) -> Interval | Insufficient:
    """Return the geometric mean of the launches' ratios, with Student's t limits over them.

    One value per launch, log(candidate/baseline) of any statistic; the launches are independent,
    and may differ in size and spread. Each limit is one-sided at `confidence`; `margin` is a ratio.
    With an infinite value (+inf) there is no upper limit, and the value counts for harm like the
    largest finite one; with −inf or NaN there are no limits. Fewer than two launches, and launches
    that do not differ, are `Insufficient`.

    Source: R. Ibragimov and U. Müller, Journal of Business and Economic Statistics 28 (2010)
    453–468: t over groups' estimates errs at most as often as it says, at levels up to .083.
    """
    finite = log_ratios[np.isfinite(log_ratios)]
    endless = bool((log_ratios == math.inf).any())
    if len(finite) == 0 or (~np.isfinite(log_ratios) & (log_ratios != math.inf)).any():
        return Interval(
            estimate=None, lower=None, upper=None, p_fail=1.0, n=len(log_ratios), method=METHOD
        )
    held = np.where(np.isfinite(log_ratios), log_ratios, finite.max())
    found = geometric_mean_ratio(held, margin=margin, bound=bound, confidence=confidence)
    if isinstance(found, Insufficient):
        return found
    return replace(found, upper=None if endless else found.upper, method=METHOD)


def between_arms(
    candidate: NDArray[np.float64],
    baseline: NDArray[np.float64],
    *,
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return the ratio of two arms whose launches are not paired: Welch's t over launches.

    Logarithms of a statistic, one value per launch of each arm; otherwise like `over_launches`.
    """
    n = min(len(candidate), len(baseline))
    if not (np.isfinite(candidate).all() and np.isfinite(baseline).all()):
        return Interval(estimate=None, lower=None, upper=None, p_fail=1.0, n=n, method=METHOD)
    found = mean_difference(
        candidate, baseline, margin=math.log(margin), bound=bound, confidence=confidence
    )
    if isinstance(found, Insufficient):
        return found
    ends = (None if x is None else math.exp(x) for x in (found.estimate, found.lower, found.upper))
    estimate, lower, upper = ends
    return replace(found, estimate=estimate, lower=lower, upper=upper, method=METHOD)
