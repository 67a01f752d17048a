"""Whether the arms' difference changes while the rollout runs."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata


def drift_p(
    differences: NDArray[np.float64], times: NDArray[np.int64], strata: NDArray[np.int64]
) -> float | None:
    """Return the two-sided p value of "the differences do not trend in time".

    Paired. Spearman's correlation within each stratum (cohort), added up: with a, b the centred
    ranks of time and difference in a stratum of m, z = Σ Σ ab / √(Σ Σa²·Σb²/(m − 1)), normal under
    every permutation within the strata. Strata that ran one after the other are no drift. Times
    alone need to be ordered, differences may be infinite. `None` where nothing varies, so at n = 0
    and n = 1.

    Source: C. Spearman, American Journal of Psychology 15 (1904) 72–101; added over strata as in
    P. van Elteren, Bulletin of the International Statistical Institute 37 (1960) 351–361.
    """
    total = variance = 0.0
    for stratum in np.unique(strata):
        rows = strata == stratum
        if rows.sum() < 2:
            continue
        a = rankdata(times[rows]) - (rows.sum() + 1) / 2
        b = rankdata(differences[rows]) - (rows.sum() + 1) / 2
        total += float(a @ b) / (rows.sum() + 1)
        variance += float((a @ a) * (b @ b)) / (rows.sum() - 1) / (rows.sum() + 1) ** 2
    if variance <= 0:
        return None
    return float(2 * norm.sf(abs(total) / math.sqrt(variance)))


Arm = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]


def interaction_p(candidate: Arm, baseline: Arm) -> float | None:
    """Return the two-sided p value of "both arms' outcomes trend alike in time".

    Unpaired; an arm is (outcomes, times, strata). Spearman's correlation within strata, r, of each
    arm, compared by z = (r_c − r_b)/√(1/d_c + 1/d_b) with d the values less the strata. A trend
    that both share, such as a machine that warms up, is no drift of their difference. `None` where
    an arm does not vary.

    Source: as `drift_p`; a common trend makes the variances smaller than taken, which is
    conservative.
    """
    parts = [_correlation(*arm) for arm in (candidate, baseline)]
    if parts[0] is None or parts[1] is None:
        return None
    (r_c, d_c), (r_b, d_b) = parts[0], parts[1]
    return float(2 * norm.sf(abs(r_c - r_b) / math.sqrt(1 / d_c + 1 / d_b)))


def _correlation(
    outcomes: NDArray[np.float64], times: NDArray[np.int64], strata: NDArray[np.int64]
) -> tuple[float, int] | None:
    """Return the correlation of ranks within strata, and its degrees of freedom."""
    products = squares_a = squares_b = 0.0
    free = 0
    for stratum in np.unique(strata):
        rows = strata == stratum
        if rows.sum() < 2:
            continue
        a = rankdata(times[rows]) - (rows.sum() + 1) / 2
        b = rankdata(outcomes[rows]) - (rows.sum() + 1) / 2
        scale = (rows.sum() + 1) ** 2
        products += float(a @ b) / scale
        squares_a += float(a @ a) / scale
        squares_b += float(b @ b) / scale
        free += int(rows.sum()) - 1
    if min(squares_a, squares_b) <= 0:
        return None
    return products / math.sqrt(squares_a * squares_b), free


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
