"""Whether the arms' difference changes while the rollout runs."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata


class Trend(NamedTuple):
    """How the arms' difference goes with time."""

    correlation: float
    """Spearman's, within strata, in [−1, 1]; unpaired, how much the candidate's exceeds the
    baseline's, in [−2, 2]."""
    p: float
    """Two-sided, of "there is no trend"."""


def paired_trend(
    differences: NDArray[np.float64], times: NDArray[np.int64], strata: NDArray[np.int64]
) -> Trend | None:
    """Return the trend of pairs' differences in time.

    Spearman's correlation within each stratum (cohort), added up: with a, b the centred ranks of
    time and difference in a stratum of m, r = Σ Σ ab / √(Σ Σ a² · Σ Σ b²) and
    z = Σ Σ ab / √(Σ Σa²·Σb²/(m − 1)), normal under every permutation within the strata. Strata that
    ran one after the other are no drift. Times alone need to be ordered, differences may be
    infinite. `None` where nothing varies, so at n = 0 and n = 1.

    Source: C. Spearman, American Journal of Psychology 15 (1904) 72–101; added over strata as in
    P. van Elteren, Bulletin of the International Statistical Institute 37 (1960) 351–361.
    """
    found = _correlation(differences, times, strata)
    if found is None:
        return None
    z = found.products / math.sqrt(found.variance)
    return Trend(found.r, float(2 * norm.sf(abs(z))))


Arm = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]


def unpaired_trend(candidate: Arm, baseline: Arm) -> Trend | None:
    """Return how differently the arms' outcomes go with time.

    Unpaired; an arm is (outcomes, times, strata). Spearman's correlation within strata, r, of each
    arm, compared by z = (r_c − r_b)/√(1/d_c + 1/d_b) with d the values less the strata. A trend
    that both share, such as a machine that warms up, is no drift of their difference. `None` where
    an arm does not vary.

    Source: as `paired_trend`; a common trend makes the variances smaller than taken, which is
    conservative.
    """
    c, b = _correlation(*candidate), _correlation(*baseline)
    if c is None or b is None:
        return None
    z = (c.r - b.r) / math.sqrt(1 / c.free + 1 / b.free)
    return Trend(c.r - b.r, float(2 * norm.sf(abs(z))))


class _Correlation(NamedTuple):
    """Of ranks within strata, each stratum's ranks scaled to its size."""

    r: float
    products: float
    variance: float
    """Of `products` under every permutation within the strata."""
    free: int
    """Values less strata."""


def _correlation(
    outcomes: NDArray[np.float64], times: NDArray[np.int64], strata: NDArray[np.int64]
) -> _Correlation | None:
    products = variance = squares_a = squares_b = 0.0
    free = 0
    for stratum in np.unique(strata):
        rows = strata == stratum
        m = int(rows.sum())
        if m < 2:
            continue
        a = (rankdata(times[rows]) - (m + 1) / 2) / (m + 1)
        b = (rankdata(outcomes[rows]) - (m + 1) / 2) / (m + 1)
        products += float(a @ b)
        squares_a += float(a @ a)
        squares_b += float(b @ b)
        variance += float((a @ a) * (b @ b)) / (m - 1)
        free += m - 1
    if variance <= 0:
        return None
    return _Correlation(products / math.sqrt(squares_a * squares_b), products, variance, free)


def candidate_later(candidate: NDArray[np.int64], baseline: NDArray[np.int64]) -> float | None:
    """Return the chance that a candidate's time is later than a baseline's, ties counting half.

    0.5 where the arms are interleaved, 1 where all of the baseline ran first: a drift of the
    machine is then a difference of the arms. `None` where an arm is empty. The Mann–Whitney
    statistic over n_c·n_b.
    """
    n_c, n_b = len(candidate), len(baseline)
    if min(n_c, n_b) == 0:
        return None
    ranks = rankdata(np.concatenate([candidate, baseline]))[:n_c]
    return float((ranks.sum() - n_c * (n_c + 1) / 2) / (n_c * n_b))
