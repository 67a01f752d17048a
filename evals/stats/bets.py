"""Anytime-valid evidence on a mean: a mixture of bets."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

METHOD = "mixture-of-bets/1"
BETS = 24


@dataclass(frozen=True, slots=True)
class Bets:
    """The wealth, in logarithms, of 24 bettors against "the mean of d is at most m₀".

    E = mean over k of Π(1 + λ_k(d_i − m₀)), λ = geomspace(0.01, 0.95, 24)/(1 + m₀), for d in
    [−1, 1]. Under the hypothesis, P(E ever reaches 1/α) ≤ α, at whatever moment one looks, if the
    mean holds whatever came before; so decide at E ≥ 20 for α = .05. n = 0 is E = 1: no evidence.
    The order of the pairs does not matter, and the logarithms of two shards of the data add.

    Source: I. Waudby-Smith and A. Ramdas, Journal of the Royal Statistical Society B 86 (2024)
    1–27; J. Ville, Étude critique de la notion de collectif (1939).
    """

    limit: float
    """m₀, the largest mean under the hypothesis."""
    log_wealth: tuple[float, ...] = (0.0,) * BETS
    """The state; with `limit` and `n` it is all that a restart needs."""
    n: int = 0

    @classmethod
    def on_pass(cls, margin: float) -> Self:
        """Bet that candidate − baseline lies above −`margin`: evidence for a pass."""
        return cls(limit=-margin)

    @classmethod
    def on_fail(cls, margin: float) -> Self:
        """Bet that baseline − candidate lies above `margin`: evidence for a fail."""
        return cls(limit=margin)

    def after(self, differences: NDArray[np.float64]) -> Self:
        """Return the state after more differences in [−1, 1], in any order."""
        if not (np.abs(differences) <= 1).all():
            raise ValueError("wanted differences in [-1, 1]")
        gains = np.log1p(np.outer(stakes(self.limit), differences - self.limit)).sum(axis=1)
        return self._of(np.asarray(self.log_wealth) + gains, self.n + len(differences))

    def merged(self, other: Self) -> Self:
        """Return the state of both shards' data together."""
        if self.limit != other.limit:
            raise ValueError(f"wanted one limit, got {self.limit} and {other.limit}")
        total = np.asarray(self.log_wealth) + np.asarray(other.log_wealth)
        return self._of(total, self.n + other.n)

    @property
    def log_e(self) -> float:
        """The logarithm of E, which itself may exceed any float."""
        return self.log_e_in_stretches(1)

    def log_e_in_stretches(self, stretch: float) -> float:
        """Return log E for differences that depend on each other up to `stretch` apart.

        Every s-th difference forms a series, s series in all, each practically independent. The
        mean of their wealths is valid evidence, like each of them; their geometric mean, which is
        no larger, is the total wealth to the power of 1/s.
        """
        # With scipy's logsumexp this took two fifths of a watch's time.
        wealth = np.asarray(self.log_wealth) / stretch
        return float(np.logaddexp.reduce(wealth)) - math.log(BETS)

    def decides(self, alpha: float) -> bool:
        """Return whether E is at least 1/α."""
        return self.log_e >= -math.log(alpha)

    def _of(self, log_wealth: NDArray[np.float64], n: int) -> Self:
        return type(self)(self.limit, tuple(float(x) for x in log_wealth), n)


@lru_cache(maxsize=256)
def stakes(limit: float) -> NDArray[np.float64]:
    """Return the bettors' λ, which must not be modified."""
    if not -1 < limit < 1:
        raise ValueError(f"wanted a limit between -1 and 1, got {limit}")
    return np.geomspace(0.01, 0.95, BETS) / (1 + limit)


def log_e_path(differences: NDArray[np.float64], limit: float) -> NDArray[np.float64]:
    """Return log E after each difference in turn; the last entry is `Bets.log_e`."""
    wealth = np.log1p(np.outer(stakes(limit), differences - limit)).cumsum(axis=1)
    return np.asarray(logsumexp(wealth, axis=0)) - math.log(BETS)
