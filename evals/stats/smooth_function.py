"""Limits of a smooth function of means, such as the difference of two rates: the delta method."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student

from evals.stats.dependence import Effect, fewest

Sample = NDArray[np.float64]
OfMeans = Callable[[Sample], float]
"""Returns a statistic of the samples' means, given in the samples' order."""

_STEP = 1e-6


class Linear(NamedTuple):
    """A statistic, and its linear approximation in the samples' entries."""

    value: float
    pulls: Sample
    """Entry i: first-order effect of the samples' entries i on the statistic, times n."""


class Limits(NamedTuple):
    """One-sided limits, each at the same confidence."""

    lower: float
    upper: float

    def outer(self, other: "Limits") -> "Limits":
        """Return the wider limit on each side."""
        return Limits(min(self.lower, other.lower), max(self.upper, other.upper))


def linear(statistic: OfMeans, samples: Sequence[Sample]) -> Linear:
    """Return the statistic of the samples' means; entry i of every sample is of one request.

    Derivatives are central differences, with steps of a millionth of a mean.
    """
    stacked = np.array(samples)
    means = stacked.mean(axis=1)
    pulls = np.zeros(stacked.shape[1])
    for row, step in enumerate(_STEP * np.maximum(np.abs(means), 1e-12)):
        shift = np.zeros(len(means))
        shift[row] = step
        slope = (statistic(means + shift) - statistic(means - shift)) / (2 * step)
        pulls += slope * (stacked[row] - means[row])
    return Linear(statistic(means), pulls)


def limits(
    value: float, parts: Sequence[tuple[Sample, Effect]], confidence: float
) -> Limits | None:
    """Return value ± z·√Σ Σu²·effect/(n(n − 1)), over independent parts of n pulls u each.

    Student's t stands for z where a design effect was estimated. `None` with a part of fewer than
    two values, or if nothing varies.

    Source: W. Cochran, Sampling Techniques (1977) section 6.
    """
    if any(len(pulls) < 2 for pulls, _ in parts):
        return None
    variance = sum(
        float(pulls @ pulls) * effect.ratio / (len(pulls) * (len(pulls) - 1))
        for pulls, effect in parts
    )
    if variance <= (1e-12 * value) ** 2:
        return None
    level = fewest([effect for _, effect in parts]).confidence(confidence)
    reach = float(norm.ppf(level)) * math.sqrt(variance)
    return Limits(value - reach, value + reach)


def over_groups(values: Sample, confidence: float) -> Limits | None:
    """Return Student's t limits of the mean of independent groups' values, `None` below two.

    Source: R. Ibragimov and U. Müller, Journal of Business and Economic Statistics 28 (2010)
    453–468.
    """
    if len(values) < 2:
        return None
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    reach = float(student.ppf(confidence, len(values) - 1)) * error
    return Limits(float(values.mean()) - reach, float(values.mean()) + reach)
