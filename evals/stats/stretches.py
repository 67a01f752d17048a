"""Rare harm in stretches: the limits on its rate after few long outages, or none.

Data without an outage cannot show how long the next one will be. The unit of evidence is therefore
the stretch: the requests in a row that one disturbance may affect together. The policy declares
its length.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv
from scipy.stats import norm

from evals.stats.dependence import Effect, in_time
from evals.stats.interval import Bound, Insufficient, Interval
from evals.stats.inversion import p_beyond

Floats = NDArray[np.float64]
Method = Callable[[float], Interval | Insufficient]
"""Limits at a one-sided confidence."""


def widened(
    method: Method,
    differences: Floats,
    stretch: float,
    *,
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return a mean difference's limits, widened for stretches that the data may have missed.

    `differences` lie in [−1, 1], in order of time; `stretch` is in requests, s. The losses
    (differences below 0) of n requests are taken as k stretches of s, where s²k is how much more
    their sums vary than independent losses' would; gains likewise. The method's own limits allow
    for that variance; a count has more above it. With P⁺ the Poisson count's exact upper limit, the
    lower limit is d̄ − √((d̄ − L)² + (s/n)²((P⁺(k) − k)² − z²k)), L the method's own; the upper one
    by the gains. Without any loss it is about −3s/n at 95 %: no event in n requests proves a rate
    below 3s/n, and no less. `p_fail` inverts the widened limits. A stretch of 1 changes nothing.

    Source: compound Poisson counts; limits combined as in MOVER, G. Zou and A. Donner, Statistics
    in Medicine 27 (2008) 1693–1702; Poisson limits, F. Garwood, Biometrika 28 (1936) 437–442.
    """
    plain = method(confidence)
    if stretch <= 1 or isinstance(plain, Insufficient) or plain.estimate is None:
        return plain
    estimate, n = plain.estimate, len(differences)
    losses, gains = (_stretches(np.maximum(sign * differences, 0.0), stretch) for sign in (-1, 1))
    unit = stretch / n

    def reach(alpha: float, *, upper: bool) -> float | None:
        own = method(1 - alpha)
        limit = own.upper if isinstance(own, Interval) and upper else None
        if isinstance(own, Interval) and not upper:
            limit = own.lower
        if limit is None:
            return None
        spread = math.hypot(limit - estimate, unit * _unseen(gains if upper else losses, alpha))
        return min(1.0, estimate + spread) if upper else max(-1.0, estimate - spread)

    def lower(alpha: float) -> float | None:
        return reach(alpha, upper=False)

    def upper(alpha: float) -> float | None:
        return reach(alpha, upper=True)

    return replace(
        plain,
        lower=lower(1 - confidence),
        upper=upper(1 - confidence),
        p_fail=max(plain.p_fail, p_beyond(lower, upper, estimate, margin=margin, bound=bound)),
    )


def draws(values: Floats, effect: Effect, stretch: float, confidence: float) -> float:
    """Return the number of independent draws that n values in [0, 1] count as, for limits.

    `values` in order of time. It is n over the design effect; with stretches of s it is the smaller
    number whose standard limits are ±√(z²v·effect/n + (s/n)²((P⁺(k) − k)² − z²k)), with k as in
    `widened` and v the values' variance, at least that of a share of 3s/n.
    """
    n = len(values)
    if stretch <= 1 or n == 0:
        return n / effect.ratio
    alpha, z = 1 - confidence, float(norm.ppf(confidence))
    k = _stretches(values, stretch)
    unseen = stretch * _unseen(k, alpha) / n
    least = min(0.5, 3 * stretch / n)
    variance = z * z * max(float(np.var(values)), least * (1 - least))
    return variance / (variance * effect.ratio / n + unseen * unseen)


def needed(stretch: float, margin: float, alpha: float) -> int:
    """Return the number of requests, none harmed, that proves a rate below `margin`."""
    return math.ceil(stretch * math.log(alpha) / math.log(1 - margin))


def _stretches(harmed: Floats, stretch: float) -> float:
    """Return the stretches that would make the sums of `harmed` vary as they do."""
    excess = (in_time(harmed).ratio - 1) * float(np.var(harmed)) * len(harmed)
    return max(0.0, excess) / stretch**2


def _unseen(count: float, alpha: float) -> float:
    """Return by how much a Poisson count's upper limit exceeds that by its variance alone.

    √((P⁺(k) − k)² − z²k): 3.0 at k = 0 and 95 %, 3.4 at 1, 4.6 at 10.
    """
    most, z = float(gammaincinv(count + 1, 1 - alpha)), float(norm.isf(alpha))
    return math.sqrt(max((most - count) ** 2 - z * z * count, 0.0))
