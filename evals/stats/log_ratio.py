"""The paired geometric-mean ratio: Student's t on the log ratio."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from evals.stats.dependence import INDEPENDENT, Effect
from evals.stats.interval import Bound, Insufficient, Interval

METHOD = "t-log-ratio/2"


def geometric_mean_ratio(
    log_ratios: NDArray[np.float64],
    *,
    effect: Effect = INDEPENDENT,
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return exp(mean d) for d = log(candidate/baseline), with limits exp(d̄ ± t·s/√n).

    Paired; `log_ratios` holds one finite value a pair; t has n − 1 degrees of freedom, or those of
    the design `effect`, by which s²/n is multiplied. Each limit is one-sided at `confidence`;
    `margin` is a ratio. n < 2 is `Insufficient`, and so are
    values that do not vary at all: no spread means that nothing independent was measured.

    Source: the paired t test (`scipy.stats.ttest_1samp`) on the log scale.
    """
    n = len(log_ratios)
    if n < 2:
        return Insufficient(reason="a spread needs two pairs", n=n, n_needed=2)
    if not np.isfinite(log_ratios).all():
        raise ValueError("wanted finite log ratios")
    mean = float(np.mean(log_ratios))
    error = float(np.std(log_ratios, ddof=1)) * math.sqrt(effect.ratio / n)
    freedom = effect.degrees(n)
    if error <= 1e-15 * max(1.0, abs(mean)):
        return Insufficient(reason="the ratios do not vary", n=n, n_needed=None)
    reach = float(student.ppf(confidence, freedom)) * error
    t = (mean - math.log(margin)) / error
    return Interval(
        estimate=math.exp(mean),
        lower=math.exp(mean - reach),
        upper=math.exp(mean + reach),
        p_fail=float(student.sf(t, freedom) if bound == "max" else student.cdf(t, freedom)),
        n=n,
        method=METHOD,
    )
