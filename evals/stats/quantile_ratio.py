"""The ratio of two arms' quantiles, with limits from order statistics."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrik

from evals.stats.interval import Bound, Insufficient, Interval
from evals.stats.inversion import p_beyond
from evals.stats.percentiles import ordered_percentile

METHOD = "mover-order-statistics/4"
_MAX_CORRELATION = 0.95

Sample = NDArray[np.float64]


class _Arms(NamedTuple):
    """Both arms' ordered values, their quantiles and what links them."""

    candidate: Sample
    baseline: Sample
    candidate_q: float
    baseline_q: float
    correlation: float
    q: float
    candidate_draws: float
    baseline_draws: float


def quantile_ratio(
    candidate: Sample,
    baseline: Sample,
    *,
    q: float,
    draws: tuple[float, float],
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return candidate's over baseline's q quantile (R-7), with MOVER limits on the log scale.

    Paired: entry i of both is one pair; values are > 0 and may be +inf (a failed request). With
    L and U the one-arm limits, upper = log(q_c/q_b) + max(√(x² + y² − 2ρxy), x, y),
    x = log(U_c/q_c), y = log(q_b/L_b); lower by symmetry. L and U are fractional order statistics:
    the rank r solves P(Beta(r, m + 1 − r) ≤ q) = α at the m = `draws` independent draws of the arm
    (values over the design effect, rounded down), is scaled back to n, and what lies between two
    values is taken on the log scale. Without a rank in 1…m (no draw need lie beyond the quantile)
    it is never moved inside, and the ratio's limit is `None`. ρ is the correlation of "above its
    own arm's quantile", held to [0, 0.95]. Each limit is one-sided at `confidence`; `p_fail` is the
    smallest level at which the limit still excludes the margin. n = 0 is `Insufficient`; n = 1 has
    an estimate and no limits. An infinite quantile leaves the estimate `None`.

    Source: MOVER, G. Zou and A. Donner, Statistics in Medicine 27 (2008) 1693–1702; fractional
    order statistics, A. Hutson, Journal of Applied Statistics 26 (1999) 343–353. Whole ranks
    (Conover 1999, section 3.2) hold more than the level asks for and cost power.
    """
    if len(candidate) != len(baseline):
        raise ValueError(f"wanted pairs, got {len(candidate)} and {len(baseline)} values")
    if len(candidate) == 0 or min(draws) < 1:
        return Insufficient(reason="no pairs", n=0, n_needed=None)
    arms = _arms(candidate, baseline, q, draws)
    correlation = _correlation(candidate > arms.candidate_q, baseline > arms.baseline_q)
    return _interval(arms._replace(correlation=correlation), margin, bound, confidence)


def unpaired_quantile_ratio(
    candidate: Sample,
    baseline: Sample,
    *,
    q: float,
    draws: tuple[float, float],
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return the ratio of `quantile_ratio` for arms that answered different requests: ρ = 0.

    The arms may differ in length. An empty arm is `Insufficient`.
    """
    if min(len(candidate), len(baseline)) == 0 or min(draws) < 1:
        return Insufficient(reason="an arm has no answers", n=0, n_needed=None)
    return _interval(_arms(candidate, baseline, q, draws), margin, bound, confidence)


def _interval(arms: _Arms, margin: float, bound: Bound, confidence: float) -> Interval:
    estimate = _log_ratio(arms.candidate_q, arms.baseline_q)
    return Interval(
        estimate=_finite_exp(estimate),
        lower=_finite_exp(_lower(arms, 1 - confidence)),
        upper=_finite_exp(_upper(arms, 1 - confidence)),
        p_fail=p_beyond(
            lambda alpha: _lower(arms, alpha),
            lambda alpha: _upper(arms, alpha),
            estimate,
            margin=math.log(margin),
            bound=bound,
        ),
        n=min(len(arms.candidate), len(arms.baseline)),
        method=METHOD,
    )


def minimum_n(q: float, confidence: float) -> int:
    """Return the fewest draws in which an upper limit of the q quantile exists: 59 for p95."""
    return math.ceil(math.log(1 - confidence) / math.log(max(q, 1 - q)))


def _arms(candidate: Sample, baseline: Sample, q: float, draws: tuple[float, float]) -> _Arms:
    if not ((candidate > 0).all() and (baseline > 0).all()):
        raise ValueError("wanted values above 0")
    candidate, baseline = np.sort(candidate), np.sort(baseline)
    candidate_q, baseline_q = ordered_percentile(candidate, q), ordered_percentile(baseline, q)
    return _Arms(
        candidate=candidate,
        baseline=baseline,
        candidate_q=candidate_q,
        baseline_q=baseline_q,
        correlation=0.0,
        q=q,
        candidate_draws=math.floor(draws[0] + 1e-9),
        baseline_draws=math.floor(draws[1] + 1e-9),
    )


def _correlation(above_c: NDArray[np.bool_], above_b: NDArray[np.bool_]) -> float:
    """Return the indicators' correlation, clipped to [0, 0.95]; 0 if one never varies."""
    spread = float(np.std(above_c) * np.std(above_b))
    if spread == 0:
        return 0.0
    covariance = float(np.mean(above_c & above_b) - np.mean(above_c) * np.mean(above_b))
    return min(max(covariance / spread, 0.0), _MAX_CORRELATION)


def _order_limit(
    ordered: Sample, draws: float, q: float, alpha: float, *, upper: bool
) -> float | None:
    """Return the one-arm limit of the quantile at level `alpha`, `None` without such a rank.

    I_q(r, m + 1 − r) = P(X ≥ r) of the binomial, so that its inverse in the count gives r − 1.
    """
    none_beyond = q**draws if upper else (1 - q) ** draws
    if none_beyond > alpha:
        return None
    rank = 1 + float(bdtrik(1 - alpha if upper else alpha, draws, q))
    place = min(rank, draws) * (len(ordered) + 1) / (draws + 1)
    return _between(ordered, place, upper=upper)


def _between(ordered: Sample, place: float, *, upper: bool) -> float:
    """Return the value at `place`, which counts from 1; beside an infinite one, the safe side."""
    below = math.floor(place)
    low, high = float(ordered[below - 1]), float(ordered[min(below, len(ordered) - 1)])
    if math.isinf(high):
        return high if upper and place > below else low
    return low * math.exp((place - below) * math.log(high / low))


def _upper(arms: _Arms, alpha: float) -> float | None:
    """Return the upper limit of the log ratio: +inf where unbounded, `None` where unavailable."""
    if math.isinf(arms.baseline_q):
        return _upper_without_centre(arms, alpha)
    top = _order_limit(arms.candidate, arms.candidate_draws, arms.q, alpha, upper=True)
    bottom = _order_limit(arms.baseline, arms.baseline_draws, arms.q, alpha, upper=False)
    if top is None or bottom is None:
        return None
    if math.isinf(top):
        return math.inf
    reach = _reach(
        math.log(top / arms.candidate_q), math.log(arms.baseline_q / bottom), arms.correlation
    )
    return math.log(arms.candidate_q / arms.baseline_q) + reach


def _upper_without_centre(arms: _Arms, alpha: float) -> float | None:
    """Return an upper limit of the log ratio if the baseline's quantile is infinite.

    MOVER has no centre then. The candidate's upper over the baseline's lower limit, each at
    alpha/2, is still a bound (Bonferroni).
    """
    top = _order_limit(arms.candidate, arms.candidate_draws, arms.q, alpha / 2, upper=True)
    bottom = _order_limit(arms.baseline, arms.baseline_draws, arms.q, alpha / 2, upper=False)
    if top is None or bottom is None or math.isinf(top):
        return None
    return -math.inf if math.isinf(bottom) else math.log(top / bottom)


def _lower(arms: _Arms, alpha: float) -> float | None:
    """Return the lower limit of the log ratio, by the symmetry of swapping the arms."""
    swapped = arms._replace(
        candidate=arms.baseline,
        baseline=arms.candidate,
        candidate_q=arms.baseline_q,
        baseline_q=arms.candidate_q,
        candidate_draws=arms.baseline_draws,
        baseline_draws=arms.candidate_draws,
    )
    limit = _upper(swapped, alpha)
    return None if limit is None else -limit


def _reach(x: float, y: float, correlation: float) -> float:
    """Return √(x² + y² − 2ρxy), but at least each arm's own uncertainty x or y.

    The correlation is that of indicators, known only at the quantile. If the arms separate, as
    between two modes, the root alone would be less than one arm's uncertainty.
    """
    x, y = max(x, 0.0), max(y, 0.0)
    return max(math.sqrt(max(x * x + y * y - 2 * correlation * x * y, 0.0)), x, y)


def _log_ratio(candidate_q: float, baseline_q: float) -> float | None:
    """Return the log ratio, infinite if one quantile is; `None` if both are."""
    if math.isinf(candidate_q) and math.isinf(baseline_q):
        return None
    return math.log(candidate_q) - math.log(baseline_q)


def _finite_exp(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else math.exp(value)
