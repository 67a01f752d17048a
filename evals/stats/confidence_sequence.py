"""The effect in split traffic, valid at every request: an asymptotic confidence sequence."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evals.stats.interval import Insufficient, Interval

METHOD = "asymptotic-confidence-sequence-aipw/1"
BURN_IN = 150
_TUNED_FOR = 1_000
"""Number of requests at which the sequence is tightest; it is valid at every number."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests in order of arrival, each answered by one arm that a coin with `split` chose."""

    outcome: NDArray[np.float64]
    to_candidate: NDArray[np.bool_]
    stratum: NDArray[np.int64]
    """Number of the cohort; outcomes are compared with the mean of its earlier outcomes."""
    split: float
    """Probability of the candidate, known by design."""


def mean_effect(traffic: Traffic, *, margin: float, confidence: float) -> Interval | Insufficient:
    """Return the average effect on the outcome, with limits that hold simultaneously in time.

    Unpaired. φ_i = μ̂₁ − μ̂₀ + (A/π − (1 − A)/(1 − π))(Y − μ̂_A), with μ̂ the arm's mean in the
    stratum before request i (predictable, so that a wrong μ̂ costs width, never level). Limits are
    φ̄ ± s·√((tρ² + 1)/(t²ρ²)·2·log(1 + √(tρ² + 1)/(2α))), s² = (SS + 1)/(t + 1), each one-sided at
    `confidence`. The level is asymptotic: nothing is said before 150 requests, where it is
    `Insufficient`. `p_fail` is the smallest α at which the lower limit excludes the margin.

    Source: I. Waudby-Smith, D. Arbour, R. Sinha, E. Kennedy and A. Ramdas, Annals of Statistics 52
    (2024) 2613–2640.
    """
    start = Effects.none(int(traffic.stratum.max(initial=-1)) + 1)
    return start.after(traffic).limits(margin=margin, confidence=confidence)


@dataclass(frozen=True, slots=True)
class Effects:
    """The state of a sequence, from which a restart can continue."""

    n: int
    mean: float
    squares: float
    """Σ(φ − mean)²."""
    counts: NDArray[np.float64]
    """Numbers of past outcomes, one row per stratum: baseline, candidate."""
    sums: NDArray[np.float64]

    @classmethod
    def none(cls, strata: int) -> "Effects":
        """Return the state before the first request."""
        return cls(0, 0.0, 0.0, np.zeros((strata, 2)), np.zeros((strata, 2)))

    def after(self, traffic: Traffic) -> "Effects":
        """Return the state after more requests, whose strata are rows of this state."""
        added = len(traffic.outcome)
        if added == 0:
            return self
        effects = _pseudo_outcomes(traffic, self)
        n, mean = self.n + added, float(effects.mean())
        apart = mean - self.mean
        squares = float(((effects - mean) ** 2).sum()) + apart**2 * self.n * added / n
        cells = (traffic.stratum, traffic.to_candidate.astype(np.int64))
        counts, sums = self.counts.copy(), self.sums.copy()
        np.add.at(counts, cells, 1)
        np.add.at(sums, cells, traffic.outcome)
        return Effects(n, self.mean + apart * added / n, self.squares + squares, counts, sums)

    def limits(
        self, *, stretch: float = 1, margin: float, confidence: float
    ) -> Interval | Insufficient:
        """Return the average effect so far, as `mean_effect` does."""
        return running_mean(
            self.n,
            self.mean,
            self.squares,
            stretch=stretch,
            margin=margin,
            confidence=confidence,
            method=METHOD,
        )


def running_mean(
    n: int,
    mean: float,
    squares: float,
    *,
    stretch: float = 1,
    margin: float,
    confidence: float,
    method: str,
) -> Interval | Insufficient:
    """Return a mean with the sequence's limits, from its sums.

    Draws depend on each other at most up to `stretch` apart, so n draws count as n/stretch.
    """
    draws = math.floor(n / stretch)
    if draws < BURN_IN:
        needed = math.ceil(BURN_IN * stretch)
        return Insufficient(reason=f"the sequence speaks from {needed} requests on", n=n,
                            n_needed=needed)  # fmt: skip
    spread = math.sqrt((squares + 1) / (n + 1))
    reach = spread * boundary(draws, 1 - confidence)
    return Interval(
        estimate=mean,
        lower=mean - reach,
        upper=mean + reach,
        p_fail=_smallest_alpha((mean - margin) / spread, draws),
        n=n,
        method=method,
    )


def pseudo_outcomes(traffic: Traffic) -> NDArray[np.float64]:
    """Return φ of each request, whose mean estimates the effect without bias."""
    return _pseudo_outcomes(traffic, Effects.none(int(traffic.stratum.max(initial=-1)) + 1))


def _pseudo_outcomes(traffic: Traffic, past: Effects) -> NDArray[np.float64]:
    expected = {arm: _past_means(traffic, past, arm=arm) for arm in (False, True)}
    own = np.where(traffic.to_candidate, expected[True], expected[False])
    pull = np.where(traffic.to_candidate, 1 / traffic.split, -1 / (1 - traffic.split))
    return np.asarray(expected[True] - expected[False] + pull * (traffic.outcome - own))


def boundary(t: int, alpha: float) -> float:
    """Return the one-sided boundary of a mean of unit variance after t requests."""
    rho2 = _rho2()
    growth = t * rho2 + 1
    return math.sqrt(2 * growth / (t * t * rho2) * math.log1p(math.sqrt(growth) / (2 * alpha)))


def _rho2() -> float:
    spent = -2 * math.log(0.05)
    return (spent + math.log(spent) + 1) / _TUNED_FOR


def _smallest_alpha(standardised: float, t: int) -> float:
    """Invert the boundary: the α at which it equals the standardised excess, at most 1."""
    if standardised <= 0:
        return 1.0
    rho2 = _rho2()
    growth = t * rho2 + 1
    exponent = standardised**2 * t * t * rho2 / (2 * growth)
    if exponent > 700:
        return 0.0
    return min(1.0, math.sqrt(growth) / (2 * math.expm1(exponent)))


def _past_means(traffic: Traffic, past: Effects, *, arm: bool) -> NDArray[np.float64]:
    """Return the mean of the stratum's earlier outcomes in the arm, 0 before the first."""
    means = np.zeros(len(traffic.outcome))
    for stratum in np.unique(traffic.stratum):
        rows = np.flatnonzero(traffic.stratum == stratum)
        own = traffic.to_candidate[rows] == arm
        before = past.sums[stratum, int(arm)], past.counts[stratum, int(arm)]
        sums = np.cumsum(np.where(own, traffic.outcome[rows], 0.0)) + before[0]
        counts = np.cumsum(own) + before[1]
        sums = np.concatenate(([before[0]], sums[:-1]))
        counts = np.concatenate(([before[1]], counts[:-1]))
        means[rows] = np.where(counts > 0, sums / np.maximum(counts, 1), 0.0)
    return means
