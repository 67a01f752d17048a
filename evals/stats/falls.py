"""A sequential alarm on a mean that falls below that of a series' own beginning."""

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from evals.stats.bets import BETS, stakes
from evals.stats.dependence import in_time

Floats = NDArray[np.float64]


class Reference(NamedTuple):
    """The beginning of a series, with which the rest is compared."""

    mean: float
    reach: float
    """By how much the mean may be too high."""
    stretch: float
    """The number of values over which neighbours depend on each other, at least 1."""

    @classmethod
    def of(cls, values: Floats, *, alpha: float, stretch: float = 1) -> Self:
        """Return the mean of values in [0, 1], too high by more than `reach` with p ≤ `alpha`.

        The values are in the order of time, at least two. The reach is Student's limit, widened by
        the design effect of neighbours (`in_time`), which is also the least stretch.
        """
        effect = in_time(values)
        wide = max(effect.ratio, stretch)
        z = float(norm.ppf(effect.confidence(1 - alpha)))
        error = float(np.std(values, ddof=1)) * math.sqrt(wide / len(values))
        return cls(float(values.mean()), z * error, wide)


class Falls(NamedTuple):
    """Evidence that values fell, from some moment on, to more than `limit` below a level.

    For each possible first value j of the fall, 24 bettors bet from there on as in `Bets`; E is
    their mean wealth over all j with weights 1/(j(j + 1)), which sum to 1. So E costs 2·log j more
    for a fall that begins late, but does not lose what a good beginning would have cost. If the
    mean never falls so far, P(E ever reaches 1/α) ≤ α. Gains are divided by the stretch s, as in
    `Bets.log_e_in_stretches`.

    Source: J. Shin, A. Ramdas and A. Rinaldo, E-detectors, New England Journal of Statistics in
    Data Science 2 (2024) 229–260; Bets as I. Waudby-Smith and A. Ramdas (2024).
    """

    limit: float
    stretch: float
    n: int = 0
    log_wealth: tuple[float, ...] = ()
    """By bettor; empty before the first value."""
    highest_log_e: float = 0.0

    @property
    def log_e(self) -> float:
        """Return the logarithm of E; without a value no bet is placed, so −∞ is shown as 0."""
        return float(logsumexp(self.log_wealth)) - math.log(BETS) if self.log_wealth else 0.0

    def after(self, losses: Floats) -> Self:
        """Return the state after more losses (level − value) in [−1, 1], in the order of time."""
        if len(losses) == 0:
            return self
        gains = np.log1p(np.outer(stakes(self.limit), losses - self.limit)) / self.stretch
        total = gains.cumsum(axis=1)
        number = np.arange(self.n + 1, self.n + len(losses) + 1, dtype=np.float64)
        begun = -np.log(number * (number + 1)) - (total - gains)
        if self.log_wealth:
            begun[:, 0] = np.logaddexp(begun[:, 0], self.log_wealth)
        path = np.logaddexp.accumulate(begun, axis=1) + total
        highest = float(logsumexp(path, axis=0).max()) - math.log(BETS)
        return self._replace(
            n=self.n + len(losses),
            log_wealth=tuple(float(x) for x in path[:, -1]),
            highest_log_e=max(self.highest_log_e, highest),
        )
