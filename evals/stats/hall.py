"""Hall's skewness-corrected t for the mean of bounded differences."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from evals.stats.dependence import INDEPENDENT, Effect
from evals.stats.interval import Bound, Insufficient, Interval

METHOD = "hall-1992/2"
METHOD_CONSTANT = "binomial-constant/1"


def mean_difference(
    differences: NDArray[np.float64],
    *,
    effect: Effect = INDEPENDENT,
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return the mean of paired differences in [−1, 1] with skewness-corrected limits.

    T(m) = √n·(W + gW²/3 + g²W³/27 + g/(6n)) against t(n − 1), with W = (d̄ − m)/s and g the sample
    skewness; a design `effect` divides n, and gives t its degrees of freedom. The cubic is
    ((1 + gW/3)³ − 1)/g, which inverts in closed form. Each limit is one-sided at `confidence`.
    n < 2 is `Insufficient`. Where all differences are one value v there
    is no spread: a share of at most π = 1 − (1 − confidence)^(1/n) can then differ from v, and the
    limits are v − π(1 + v) and v + π(1 − v).

    Source: P. Hall, Journal of the Royal Statistical Society B 54 (1992) 221–228.
    """
    n = len(differences)
    if n < 2:
        return Insufficient(reason="a spread needs two pairs", n=n, n_needed=2)
    if not (np.abs(differences) <= 1).all():
        raise ValueError("wanted differences in [-1, 1]")
    spread = float(np.std(differences, ddof=1))
    if spread < 1e-12:
        return _constant(float(differences[0]), n, margin, bound, confidence)
    mean, skew = float(np.mean(differences)), _skewness(differences)
    freedom, draws = effect.degrees(n), n / effect.ratio
    quantile = float(student.ppf(confidence, freedom))
    statistic = _statistic((mean - margin) / spread, skew, draws)
    p_above = float(student.sf(statistic, freedom))
    return Interval(
        estimate=mean,
        lower=max(-1.0, mean - spread * _inverse(quantile, skew, draws)),
        upper=min(1.0, mean - spread * _inverse(-quantile, skew, draws)),
        p_fail=p_above if bound == "max" else 1 - p_above,
        n=n,
        method=METHOD,
    )


def _skewness(values: NDArray[np.float64]) -> float:
    centred = values - np.mean(values)
    return float(np.mean(centred**3) / np.mean(centred**2) ** 1.5)


def _statistic(w: float, skew: float, n: float) -> float:
    return math.sqrt(n) * (w + skew * w**2 / 3 + skew**2 * w**3 / 27 + skew / (6 * n))


def _inverse(t: float, skew: float, n: float) -> float:
    """Return the W at which the statistic is `t`."""
    if abs(skew) < 1e-9:
        return t / math.sqrt(n)
    return 3 / skew * (math.cbrt(1 + skew * (t / math.sqrt(n) - skew / (6 * n))) - 1)


def _constant(value: float, n: int, margin: float, bound: Bound, confidence: float) -> Interval:
    share = 1 - (1 - confidence) ** (1 / n)
    return Interval(
        estimate=value,
        lower=value - share * (1 + value),
        upper=value + share * (1 - value),
        p_fail=_constant_p(value if bound == "max" else -value, margin * _sign(bound), n),
        n=n,
        method=METHOD_CONSTANT,
    )


def _sign(bound: Bound) -> int:
    return 1 if bound == "max" else -1


def _constant_p(value: float, margin: float, n: int) -> float:
    """Return the chance that n draws are all `value` when the mean is at most the margin."""
    if value <= margin:
        return 1.0
    return ((1 + margin) / (1 + value)) ** n
