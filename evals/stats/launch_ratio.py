"""A ratio's limits over launches of the servers, which hold for further launches too."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from evals.stats.interval import Bound, Insufficient, Interval, exponential
from evals.stats.log_ratio import geometric_mean_ratio
from evals.stats.welch import mean_difference

METHOD = "t-over-launches/1"
_NO_SPREAD = 1e-12


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


def differences_over_launches(
    differences: NDArray[np.float64], *, margin: float, bound: Bound, confidence: float
) -> Interval | Insufficient:
    """Return the mean of the launches' differences, with Student's t limits over them.

    One value per launch, candidate − baseline of any statistic; otherwise like `over_launches`.
    Launches that do not differ at all have limits of no width. Source: as there.
    """
    n = len(differences)
    if n < 2:
        return Insufficient(reason="a spread needs two launches", n=n, n_needed=2)
    mean, error = float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(n)
    if error < _NO_SPREAD:
        return _point(mean, n, margin, bound)
    reach, t = float(student.ppf(confidence, n - 1)) * error, (mean - margin) / error
    return Interval(
        estimate=mean,
        lower=mean - reach,
        upper=mean + reach,
        p_fail=float(student.sf(t, n - 1) if bound == "max" else student.cdf(t, n - 1)),
        n=n,
        method=METHOD,
    )


def difference_between_arms(
    candidate: NDArray[np.float64],
    baseline: NDArray[np.float64],
    *,
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return the difference of two arms whose launches are not paired: Welch's t over launches.

    One value per launch of each arm; otherwise like `differences_over_launches`.
    """
    n = min(len(candidate), len(baseline))
    spread = float(candidate.std() + baseline.std())
    if n >= 2 and spread < _NO_SPREAD:
        return _point(float(candidate.mean() - baseline.mean()), n, margin, bound)
    found = mean_difference(candidate, baseline, margin=margin, bound=bound, confidence=confidence)
    return found if isinstance(found, Insufficient) else replace(found, method=METHOD)


def _point(mean: float, n: int, margin: float, bound: Bound) -> Interval:
    beyond = mean > margin if bound == "max" else mean < margin
    return Interval(
        estimate=mean, lower=mean, upper=mean, p_fail=0.0 if beyond else 1.0, n=n, method=METHOD
    )


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
    return found if isinstance(found, Insufficient) else exponential(found, METHOD)
