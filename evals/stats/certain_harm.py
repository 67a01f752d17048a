"""P values of harm that hold at any n: exact, or by an inequality."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betaincinv, rel_entr

from evals.stats.interval import Bound
from evals.stats.paired_exact import loss_p

_LEAST = 1e-12


def paired_share_p(
    candidate: NDArray[np.bool_],
    baseline: NDArray[np.bool_],
    draws: float,
    *,
    margin: float,
    bound: Bound,
) -> float:
    """Return the exact p value of "candidate − baseline is no worse than the margin".

    Paired shares; `draws` are the independent ones among the pairs, and counts are scaled down to
    them. See `paired_exact.loss_p`.
    """
    scale = draws / len(candidate)
    more, less = (candidate & ~baseline).sum() * scale, (baseline & ~candidate).sum() * scale
    gained, lost = (more, less) if bound == "min" else (less, more)
    return loss_p(float(gained), float(lost), draws, -margin if bound == "min" else margin)


def unpaired_share_p(
    candidate: tuple[float, float], baseline: tuple[float, float], *, margin: float, bound: Bound
) -> float:
    """Return a p value of "candidate's share − baseline's is no worse than the margin".

    Unpaired, of (successes, draws). Twice the level at which one-sided Clopper–Pearson limits of
    the arms part by the margin: valid by Bonferroni's inequality, and at least the exact value.
    Fractional counts are rounded towards no harm.
    """
    if bound == "max":
        worse, better, loss = candidate, baseline, margin
    else:
        worse, better, loss = (baseline, candidate, -margin)

    def gap(level: float) -> float:
        return _lower(worse, level) - _upper(better, level) - loss

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
    seen, limit = (1 + mean) / 2, (1 + margin) / 2
    divergence = float(rel_entr(seen, limit) + rel_entr(1 - seen, 1 - limit))
    return math.exp(-draws * divergence)


def _lower(share: tuple[float, float], level: float) -> float:
    successes, draws = math.floor(share[0] + 1e-9), math.ceil(share[1] - 1e-9)
    if successes <= 0:
        return 0.0
    return float(betaincinv(successes, draws - successes + 1, level))


def _upper(share: tuple[float, float], level: float) -> float:
    successes, draws = math.ceil(share[0] - 1e-9), math.floor(share[1] + 1e-9)
    if successes >= draws:
        return 1.0
    return float(betaincinv(successes + 1, draws - successes, 1 - level))
