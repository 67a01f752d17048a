"""Levels and p values of a test that may end at any of its declared looks."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import Final

from evals.stats.spending import last_level

_TOTALS: Final = (
    *(10.0**exponent for exponent in range(-8, -2)),
    *(0.003, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.8),
)
"""Totals between which p values over looks are interpolated."""


@lru_cache(maxsize=256)
def spent_levels(sizes: tuple[int, ...], total: float, power: float) -> tuple[float, ...]:
    """Return the level of each look, at which total · (n / N)^power is spent by look n of N.

    `sizes` is the number of pairs of each look, increasing; N is the last. The chance that any of
    the looks errs is `total`, as in `spending.ever_passes`. One look has the whole level; an empty
    tuple has none. Raises `ValueError` if sizes do not increase.

    Source: K. Lan and D. DeMets, Biometrika 70 (1983) 659–663; the spending functions are those of
    K. Kim and D. DeMets, Biometrika 74 (1987) 149–154.
    """
    if any(later <= before for before, later in pairwise((0, *sizes))):
        raise ValueError(f"wanted increasing numbers of pairs above 0, got {sizes}")
    levels: list[float] = []
    for i, size in enumerate(sizes):
        spent = total * (size / sizes[-1]) ** power
        levels.append(last_level(sizes[: i + 1], tuple(levels), spent) if i else spent)
    return tuple(levels)


def over_looks(p: float, look: int, sizes: Sequence[int], power: float) -> float:
    """Return the p value over all looks, for the p value `p` of one look, counted from 0.

    It is the smallest total at which that look rejects. Its minimum over the looks taken is valid
    whenever the test ends, and in Holm's correction. Between seventeen totals it is interpolated on
    the scale of normal scores, to within a fiftieth.

    Source: Q. Liu and K. Anderson, Journal of the American Statistical Association 103 (2008)
    1621–1630.
    """
    levels = [spent_levels(tuple(sizes), total, power)[look] for total in _TOTALS]
    if p <= levels[0]:
        return _TOTALS[0] * p / levels[0]
    if p >= levels[-1]:
        return 1.0
    above = next(i for i, level in enumerate(levels) if level >= p)
    low, high = _score(levels[above - 1]), _score(levels[above])
    share = (low - _score(p)) / (low - high)
    first, last = _score(_TOTALS[above - 1]), _score(_TOTALS[above])
    return min(1.0, math.erfc((first + share * (last - first)) / math.sqrt(2)) / 2)


def _score(level: float) -> float:
    return -NormalDist().inv_cdf(level)
