"""Miettinen and Nurminen's score interval for a difference of two independent proportions."""

import math

from scipy.optimize import brentq
from scipy.stats import norm

from evals.stats.interval import Bound, Insufficient, Interval

METHOD = "miettinen-nurminen-1985/1"
_EDGE = 1e-12


def unpaired_difference(
    candidate: tuple[float, float],
    baseline: tuple[float, float],
    *,
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return candidate's share − baseline's share of (successes, draws), with score limits.

    Unpaired. z(Δ₀) = (p̂_c − p̂_b − Δ₀) / √((p̃_c(1 − p̃_c)/n_c + p̃_b(1 − p̃_b)/n_b)·N/(N − 1)), with
    p̃ the maximum-likelihood shares under p_c − p_b = Δ₀ and N = n_c + n_b. Each limit is one-sided
    at `confidence`: the Δ₀ at which |z| = Φ⁻¹(confidence). Counts may be fractional (scaled down
    to clusters, or to the effective number of weighted draws). n = 0 in an arm is `Insufficient`;
    n = 1 yields limits that decide nothing.

    Written here because statsmodels 0.15's `confint_proportions_2indep(method="score")` raises
    where an arm has no failure or no success, and differs from the published limits elsewhere.

    Source: O. Miettinen and M. Nurminen, Statistics in Medicine 4 (1985) 213–226.
    """
    for successes, draws in (candidate, baseline):
        if not 0 <= successes <= draws * (1 + 1e-12):
            raise ValueError(f"wanted 0 ≤ successes ≤ draws, got {successes} of {draws}")
    draws = min(candidate[1], baseline[1])
    if draws <= 0:
        return Insufficient(reason="an arm has no answers", n=0, n_needed=None)
    z = score(candidate, baseline, margin)
    return Interval(
        estimate=candidate[0] / candidate[1] - baseline[0] / baseline[1],
        lower=_limit(candidate, baseline, float(norm.ppf(confidence))),
        upper=_limit(candidate, baseline, -float(norm.ppf(confidence))),
        p_fail=float(norm.sf(z) if bound == "max" else norm.cdf(z)),
        n=math.floor(draws),
        method=METHOD,
    )


def score(
    candidate: tuple[float, float], baseline: tuple[float, float], difference: float
) -> float:
    """Return z(Δ₀); if the variance is 0, it is 0 or infinite."""
    (x1, n1), (x0, n0) = candidate, baseline
    p0 = _constrained(candidate, baseline, difference)
    p1 = min(max(p0 + difference, 0.0), 1.0)
    total = n1 + n0
    variance = (p1 * (1 - p1) / n1 + p0 * (1 - p0) / n0) * total / max(total - 1, _EDGE)
    excess = x1 / n1 - x0 / n0 - difference
    if variance <= 1e-300:
        return 0.0 if abs(excess) < _EDGE else math.copysign(math.inf, excess)
    return excess / math.sqrt(variance)


def _constrained(
    candidate: tuple[float, float], baseline: tuple[float, float], delta: float
) -> float:
    """Return the baseline's maximum-likelihood share under the difference: the cubic's root."""
    (x1, n1), (x0, n0) = candidate, baseline
    total, successes = n1 + n0, x1 + x0
    low, high = max(0.0, -delta), min(1.0, 1 - delta)
    l2 = ((n1 + 2 * n0) * delta - total - successes) / total
    l1 = ((n0 * delta - total - 2 * x0) * delta + successes) / total
    l0 = x0 * delta * (1 - delta) / total
    c = l2**3 / 27 - l1 * l2 / 6 + l0 / 2
    b = math.copysign(math.sqrt(max(l2 * l2 / 9 - l1 / 3, 0.0)), c)
    if abs(b) < 1e-9:
        return min(max(-l2 / 3, low), high)
    angle = (math.pi + math.acos(min(max(c / b**3, -1.0), 1.0))) / 3
    return min(max(2 * b * math.cos(angle) - l2 / 3, low), high)


def _limit(candidate: tuple[float, float], baseline: tuple[float, float], target: float) -> float:
    """Return the Δ₀ at which z(Δ₀) is `target`; z falls as Δ₀ grows."""
    low, high = -1 + _EDGE, 1 - _EDGE
    if score(candidate, baseline, low) <= target:
        return -1.0
    if score(candidate, baseline, high) >= target:
        return 1.0
    return float(brentq(lambda d: score(candidate, baseline, d) - target, low, high, xtol=1e-15))
