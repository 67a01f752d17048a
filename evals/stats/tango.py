"""Tango's score interval for a difference of two paired proportions."""

import math

from scipy.optimize import brentq
from scipy.stats import norm

from evals.stats.interval import Bound, Insufficient, Interval
from evals.stats.paired_exact import loss_p

METHOD = "tango-1998/4"
_EDGE = 1e-12
_EXACT_BELOW = 0.25
"""p value below which the exact one is computed: above every level that a policy may set."""


def paired_difference(
    gained: float, lost: float, n: float, *, margin: float, bound: Bound, confidence: float
) -> Interval | Insufficient:
    """Return the difference (gained − lost)/n with score limits and a p value at the margin.

    Paired; `gained` counts the pairs in which only the candidate succeeds, `lost` those in which
    only the baseline does. Each limit is one-sided at `confidence`: the Δ₀ at which
    |z(Δ₀)| = Φ⁻¹(confidence). `p_fail` is the score's p value or, where that is small, an exact
    one: with few discordant pairs the normal law fails up to three times too often at the levels of
    a large family. Counts may be fractional (scaled down to clusters).
    n = 0 is `Insufficient`; n = 1 yields limits near ±1, which decide nothing.

    Source: T. Tango, Statistics in Medicine 17 (1998) 891–908.
    """
    if n <= 0:
        return Insufficient(reason="no pairs", n=0, n_needed=None)
    _check_counts(gained, lost, n)
    return Interval(
        estimate=(gained - lost) / n,
        lower=_limit(gained, lost, n, float(norm.ppf(confidence))),
        upper=_limit(gained, lost, n, -float(norm.ppf(confidence))),
        p_fail=_p_fail(gained, lost, n, margin, bound),
        n=math.floor(n),
        method=METHOD,
    )


def _p_fail(gained: float, lost: float, n: float, margin: float, bound: Bound) -> float:
    if bound == "max":  # more is worse: a gain beyond the margin is the swapped arms' loss
        return _p_fail(lost, gained, n, -margin, "min")
    p = float(norm.cdf(score(gained, lost, n, margin)))
    return p if p > _EXACT_BELOW else min(_EXACT_BELOW, loss_p(gained, lost, n, -margin))


def score(gained: float, lost: float, n: float, difference: float) -> float:
    """Return z(Δ₀) = (b − c − nΔ₀) / √(n(2p̃ + Δ₀(1 − Δ₀))), with p̃ the constrained MLE.

    p̃ = (√(B² − 4AC) − B)/2A estimates the share of pairs lost under Δ₀, with A = 2n,
    B = −b − c + (2n − b + c)Δ₀, C = −cΔ₀(1 − Δ₀). Where the variance is 0, z is 0 or infinite.
    """
    b, c, delta = gained, lost, difference
    a2 = 2 * n
    b2 = -b - c + (2 * n - b + c) * delta
    c2 = -c * delta * (1 - delta)
    p_lost = (math.sqrt(max(b2 * b2 - 4 * a2 * c2, 0.0)) - b2) / (2 * a2)
    variance = n * (2 * p_lost + delta * (1 - delta))
    excess = b - c - n * delta
    if variance <= 0:
        return 0.0 if excess == 0 else math.copysign(math.inf, excess)
    return excess / math.sqrt(variance)


def _limit(gained: float, lost: float, n: float, target: float) -> float:
    """Return the Δ₀ at which z(Δ₀) is `target`; z falls as Δ₀ grows."""
    low, high = -1 + _EDGE, 1 - _EDGE
    if score(gained, lost, n, low) <= target:
        return -1.0
    if score(gained, lost, n, high) >= target:
        return 1.0
    return float(brentq(lambda d: score(gained, lost, n, d) - target, low, high, xtol=1e-15))


def _check_counts(gained: float, lost: float, n: float) -> None:
    if gained < 0 or lost < 0 or gained + lost > n * (1 + 1e-12):
        raise ValueError(f"wanted 0 ≤ gained + lost ≤ n, got {gained} + {lost} of {n}")
