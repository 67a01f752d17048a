"""Test whether the arms' difference changes during the rollout."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata
from scipy.stats import t as student

from evals.stats.dependence import INDEPENDENT, Effect, fewest


class Trend(NamedTuple):
    """The trend of the arms' difference over time."""

    correlation: float
    """Spearman's correlation within strata, in [−1, 1]; unpaired, the candidate's minus the
    baseline's, in [−2, 2]."""
    p: float
    """Two-sided p value of "there is no trend"."""


EffectOf = Callable[[NDArray[np.float64]], Effect]
"""Returns the design effect of values in the order of the outcomes."""


def independent(_: NDArray[np.float64]) -> Effect:
    """Return the effect of values that do not depend on each other."""
    return INDEPENDENT


def paired_trend(
    differences: NDArray[np.float64],
    times: NDArray[np.int64],
    strata: NDArray[np.int64],
    effect_of: EffectOf = independent,
) -> Trend | None:
    """Return the trend of pairs' differences in time.

    Spearman's correlation within each stratum (cohort), added up: with a, b the centred ranks of
    time and difference in a stratum of m, r = Σ Σ ab / √(Σ Σ a² · Σ Σ b²) and
    z = Σ Σ ab / √(Σ Σa²·Σb²/(m − 1)), normal under every permutation within the strata. Neighbours
    that depend on each other go up and down together for a while without a trend: z is divided by
    the root of the design effect of what the line through the ranks leaves, and judged by Student's
    t, one degree fewer for the line. Strata that ran one after the other are no drift. Times alone
    need to be ordered, differences may be infinite. `None` where nothing varies, so at n = 0 and
    n = 1.

    Source: C. Spearman, American Journal of Psychology 15 (1904) 72–101; added over strata as in
    P. van Elteren, Bulletin of the International Statistical Institute 37 (1960) 351–361.
    """
    found = _correlation(differences, times, strata, effect_of)
    if found is None:
        return None
    z = found.products / math.sqrt(found.variance * found.effect.ratio)
    return Trend(found.r, _two_sided(z, [found.effect]))


class ArmSeries(NamedTuple):
    """One arm's outcomes with their times, strata and design effect."""

    outcomes: NDArray[np.float64]
    times: NDArray[np.int64]
    strata: NDArray[np.int64]
    effect_of: EffectOf = independent


def unpaired_trend(candidate: ArmSeries, baseline: ArmSeries) -> Trend | None:
    """Return the difference between the arms' trends over time.

    Spearman's correlation within strata, r, of each arm, compared by z = (r_c − r_b)/√(e_c/d_c +
    e_b/d_b) with d the values less the strata and e the design effect, as in `paired_trend`. A
    trend that both share, such as a machine that warms up, is no drift of their difference. `None`
    where an arm does not vary.

    Source: as `paired_trend`; a common trend makes the variances smaller than taken, which is
    conservative.
    """
    c, b = _correlation(*candidate), _correlation(*baseline)
    if c is None or b is None:
        return None
    z = (c.r - b.r) / math.sqrt(c.effect.ratio / c.free + b.effect.ratio / b.free)
    return Trend(c.r - b.r, _two_sided(z, [c.effect, b.effect]))


class _Correlation(NamedTuple):
    """Of ranks within strata, each stratum's ranks scaled to its size."""

    r: float
    products: float
    variance: float
    """Of `products` under every permutation within the strata."""
    free: int
    """Values less strata."""
    effect: Effect


def _two_sided(z: float, effects: Sequence[Effect]) -> float:
    batches = fewest(effects).batches
    p = norm.sf(abs(z)) if batches is None else student.sf(abs(z), batches - 2)
    return float(2 * p)


def _correlation(
    outcomes: NDArray[np.float64],
    times: NDArray[np.int64],
    strata: NDArray[np.int64],
    effect_of: EffectOf,
) -> _Correlation | None:
    variance, free = 0.0, 0
    a, b = np.zeros((2, len(outcomes)))
    for stratum in np.unique(strata):
        rows = strata == stratum
        m = int(rows.sum())
        if m < 2:
            continue
        a[rows] = (rankdata(times[rows]) - (m + 1) / 2) / (m + 1)
        b[rows] = (rankdata(outcomes[rows]) - (m + 1) / 2) / (m + 1)
        variance += float((a[rows] @ a[rows]) * (b[rows] @ b[rows])) / (m - 1)
        free += m - 1
    if variance <= 0:
        return None
    products, squares = float(a @ b), float(a @ a)
    left = b - products / squares * a
    r = products / math.sqrt(squares * float(b @ b))
    return _Correlation(r, products, variance, free, effect_of(left))


def candidate_later(candidate: NDArray[np.int64], baseline: NDArray[np.int64]) -> float | None:
    """Return the chance that a candidate's time is later than a baseline's, ties counting half.

    0.5 if the arms are interleaved, 1 if all of the baseline ran first: a drift of the machine is
    then confounded with the arms. `None` if an arm is empty. The Mann–Whitney statistic divided by
    n_c·n_b.
    """
    n_c, n_b = len(candidate), len(baseline)
    if min(n_c, n_b) == 0:
        return None
    ranks = rankdata(np.concatenate([candidate, baseline]))[:n_c]
    return float((ranks.sum() - n_c * (n_c + 1) / 2) / (n_c * n_b))
