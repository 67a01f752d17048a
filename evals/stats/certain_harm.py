"""P values of harm that hold at any n: exact, or by an inequality."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betaincinv, rel_entr

from evals.stats.interval import Bound
from evals.stats.paired_exact import loss_p

_LEAST = 1e-12


class ArmMean(NamedTuple):
    """One arm's mean or share, and its number of independent draws."""

    mean: float
    draws: float


def paired_share_p(
    candidate: NDArray[np.bool_],
    baseline: NDArray[np.bool_],
    draws: float,
    *,
    margin: float,
    bound: Bound,
) -> float:
    """Return the exact p value of "candidate − baseline is no worse than the margin".

    Paired shares; `draws` is the number of independent draws among the pairs, to which the counts
    are scaled down. See `paired_exact.loss_p`.
    """
    scale = draws / len(candidate)
    more, less = (candidate & ~baseline).sum() * scale, (baseline & ~candidate).sum() * scale
    gained, lost = (more, less) if bound == "min" else (less, more)
    return loss_p(float(gained), float(lost), draws, -margin if bound == "min" else margin)


def unpaired_share_p(
    candidate: ArmMean, baseline: ArmMean, *, margin: float, bound: Bound
) -> float:
    """Return a p value of "candidate's share − baseline's is no worse than the margin".

    Unpaired. Twice the level at which one-sided Clopper–Pearson limits of the arms part by the
    margin: valid by Bonferroni's inequality, and at least the exact value. Fractional counts are
    rounded towards no harm.
    """
    return _parted(candidate, baseline, (_share_below, _share_above), margin=margin, bound=bound)


def unpaired_mean_p(candidate: ArmMean, baseline: ArmMean, *, margin: float, bound: Bound) -> float:
    """Return a p value of "candidate's mean − baseline's is no worse than the margin".

    Unpaired, of values in [0, 1]. Twice the level at which one-sided limits by Hoeffding's
    inequality part by the margin: those means q with n·KL(mean, q) = −ln level. No draw proves
    nothing.

    Source: W. Hoeffding, Journal of the American Statistical Association 58 (1963), theorem 1.
    """
    return _parted(candidate, baseline, (_mean_below, _mean_above), margin=margin, bound=bound)


def _parted(
    candidate: ArmMean,
    baseline: ArmMean,
    limits: tuple[Callable[[ArmMean, float], float], Callable[[ArmMean, float], float]],
    *,
    margin: float,
    bound: Bound,
) -> float:
    """Return twice the level at which the worse arm's lower limit parts from the other's upper."""
    below, above = limits
    worse, better, loss = (
        (candidate, baseline, margin) if bound == "max" else (baseline, candidate, -margin)
    )

    def gap(level: float) -> float:
        return below(worse, level) - above(better, level) - loss

    if gap(0.5) <= 0:
        return 1.0
    if gap(_LEAST) > 0:
        return 2 * _LEAST
    exponent = brentq(lambda x: gap(math.exp(x)), math.log(_LEAST), math.log(0.5), xtol=1e-9)
    return min(1.0, 2 * math.exp(exponent))


def mean_difference_p(
    differences: NDArray[np.float64], draws: float, *, margin: float, bound: Bound
) -> float:
    """Return Hoeffding's p value of "the mean difference is no worse than the margin".

    For independent differences in [−1, 1] with mean d, exp(−n·KL((1 + d)/2, (1 + margin)/2)) where
    d is beyond the margin, else 1.

    Source: W. Hoeffding, Journal of the American Statistical Association 58 (1963), theorem 1.
    """
    mean = float(differences.mean())
    beyond = mean > margin if bound == "max" else mean < margin
    if not beyond:
        return 1.0
    return math.exp(-draws * _divergence((1 + mean) / 2, (1 + margin) / 2))


def _share_below(arm: ArmMean, level: float) -> float:
    successes = math.floor(arm.mean * arm.draws + 1e-9)
    if successes <= 0:
        return 0.0
    draws = math.ceil(arm.draws - 1e-9)
    return float(betaincinv(successes, draws - successes + 1, level))


def _share_above(arm: ArmMean, level: float) -> float:
    successes, draws = math.ceil(arm.mean * arm.draws - 1e-9), math.floor(arm.draws + 1e-9)
    if successes >= draws:
        return 1.0
    return float(betaincinv(successes + 1, draws - successes, 1 - level))


def _mean_below(arm: ArmMean, level: float) -> float:
    return 1 - _mean_above(ArmMean(1 - arm.mean, arm.draws), level)


def _mean_above(arm: ArmMean, level: float) -> float:
    """Return the largest mean that the arm's values do not exclude at the level."""
    reach = -math.log(level)

    def excess(q: float) -> float:
        return arm.draws * _divergence(arm.mean, q) - reach

    if arm.mean >= 1 or excess(1 - _LEAST) <= 0:
        return 1.0
    return float(brentq(excess, max(arm.mean, 0.0), 1 - _LEAST, xtol=1e-12))


def _divergence(seen: float, mean: float) -> float:
    return float(rel_entr(seen, mean) + rel_entr(1 - seen, 1 - mean))
