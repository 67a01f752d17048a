"""The exact chance that any of a few declared looks passes wrongly."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_FAR = 8.5
"""Lower end of the integration, as a normal score; less than 1e-16 lies below."""
_NODES = 64
_MOST_NODES = 2_000
_DIGITS = 4


class _Density(NamedTuple):
    """The distribution of the running sum if no look has passed: Gauss nodes and masses."""

    at: Floats
    mass: Floats


def ever_passes(pairs: Sequence[int], levels: Sequence[float]) -> float:
    """Return the chance that a test at the margin passes at any of its looks.

    Each look is one-sided at its level. The statistics are jointly normal with correlation √(n_i /
    n_j), which holds for growing data: for means at once, for quantiles from a few hundred pairs.
    For looks too close together to be integrated, the sum of their levels is used, an upper bound.

    Source: P. Armitage, C. McPherson and B. Rowe, Journal of the Royal Statistical Society A 132
    (1969) 235–244, recursive integration.
    """
    if _nodes(pairs) > _MOST_NODES:
        return math.fsum(levels)
    density, spent = None, 0.0
    for i, level in enumerate(levels):
        spent += _passing(density, pairs, i, _score(level))
        density = _kept(density, pairs, i, level)
    return spent


@lru_cache(maxsize=64)
def last_level(pairs: tuple[int, ...], earlier: tuple[float, ...], total: float) -> float:
    """Return the level of the last look at which all looks together spend `total`.

    It is rounded down at the fourth digit, so that every machine gets the same.
    """
    if _nodes(pairs) > _MOST_NODES:
        return total - math.fsum(earlier)
    density, left = None, total
    for i, level in enumerate(earlier):
        left -= _passing(density, pairs, i, _score(level))
        density = _kept(density, pairs, i, level)
    low, high = 0.0, _FAR
    for _ in range(60):
        middle = (low + high) / 2
        above = _passing(density, pairs, len(pairs) - 1, middle) > left
        low, high = (middle, high) if above else (low, middle)
    level = _sf(high)
    unit = 10.0 ** (math.floor(math.log10(level)) + 1 - _DIGITS)
    return round(math.floor(level / unit + 1e-6) * unit, 12)


def _passing(density: _Density | None, pairs: Sequence[int], i: int, score: float) -> float:
    """Return the chance that look i is the first to exceed `score`."""
    if density is None:
        return _sf(score)
    scale = math.sqrt(pairs[i] - pairs[i - 1])
    beyond = (score * math.sqrt(pairs[i]) - density.at) / scale
    return math.fsum(_sf(float(z)) * m for z, m in zip(beyond, density.mass, strict=True))


def _kept(density: _Density | None, pairs: Sequence[int], i: int, level: float) -> _Density:
    nodes, weights = _gauss(_nodes(pairs))
    width = math.sqrt(pairs[i])
    low, high = -_FAR * width, _score(level) * width
    at = low + (high - low) * (nodes + 1) / 2
    weights = weights * (high - low) / 2
    if density is None:
        return _Density(at, weights * _pdf(at / width) / width)
    scale = math.sqrt(pairs[i] - pairs[i - 1])
    return _Density(at, weights * (_pdf((at[:, None] - density.at) / scale) @ density.mass) / scale)


@lru_cache(maxsize=8)
def _gauss(count: int) -> tuple[Floats, Floats]:
    """Return Gauss and Legendre's nodes on [−1, 1] and their weights."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return np.asarray(nodes), np.asarray(weights)


def _nodes(pairs: Sequence[int]) -> int:
    """Return a number of nodes that is dense relative to the shortest step between two looks."""
    steps = [
        _FAR * math.sqrt(later) / math.sqrt(later - before) for before, later in pairwise(pairs)
    ]
    return max(_NODES, math.ceil(4 * max(steps, default=0.0)))


def _score(level: float) -> float:
    return -NormalDist().inv_cdf(level)


def _sf(score: float) -> float:
    return math.erfc(score / math.sqrt(2)) / 2


def _pdf(score: Floats) -> Floats:
    return np.asarray(np.exp(-score * score / 2) / math.sqrt(2 * math.pi))
