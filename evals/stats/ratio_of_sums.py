"""Ratios of sums, such as tokens, or cost per token: the delta method on the log scale."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from evals.stats.dependence import INDEPENDENT, Effect
from evals.stats.interval import Bound, Insufficient, Interval

METHOD = "delta-log-ratio-of-sums/2"

Sample = NDArray[np.float64]
EffectOf = Callable[[Sample], Effect]
"""The design effect of values that stand as the samples' entries do."""


class ArmSums(NamedTuple):
    """One arm's sums: factor·Σ numerator, divided by Σ denominator if there is one."""

    numerator: Sample
    denominator: Sample | None
    effect_of: EffectOf
    factor: float = 1.0

    def signed(self) -> list[tuple[Sample, int]]:
        """Return the samples with the powers in which their sums enter."""
        lower = [] if self.denominator is None else [(self.denominator, -1)]
        return [(self.numerator, 1), *lower]


def ratio_of_sums(
    numerators: Sequence[Sample],
    denominators: Sequence[Sample],
    *,
    effect_of: EffectOf,
    factor: float = 1.0,
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return factor·Π Σx / Π Σy, x over the numerators and y over the denominators.

    Paired: entry i of every sample is of pair i. One numerator and one denominator are a ratio of
    sums; two of each a ratio of two rates. The logarithm is linear in the samples' means near them:
    pair i counts u = Σ x_i/x̄ − Σ y_i/ȳ, less what as many samples of 1 would; the squared error is
    Σu²/(n(n − 1)) times the design effect of u. Each limit is exp(log θ ± z·error), one-sided at
    `confidence`, with Student's t for z where the effect was estimated. Fewer than two pairs, a sum
    of 0 and values without spread are `Insufficient`.

    Source: W. Cochran, Sampling Techniques (1977) sections 6.3 and 9A.
    """
    signed = [(x, 1) for x in numerators] + [(y, -1) for y in denominators]
    found = _of(signed, effect_of)
    if isinstance(found, Insufficient):
        return found
    return _interval(found._replace(log_ratio=math.log(factor) + found.log_ratio),
                     margin, bound, confidence)  # fmt: skip


def unpaired_ratio_of_sums(
    candidate: ArmSums, baseline: ArmSums, *, margin: float, bound: Bound, confidence: float
) -> Interval | Insufficient:
    """Return the ratio of two arms that answered different requests: their variances add.

    n is that of the smaller arm; otherwise as `ratio_of_sums`.
    """
    above, below = (_of(arm.signed(), arm.effect_of) for arm in (candidate, baseline))
    if isinstance(above, Insufficient):
        return above
    if isinstance(below, Insufficient):
        return below
    found = _Log(
        math.log(candidate.factor / baseline.factor) + above.log_ratio - below.log_ratio,
        above.variance + below.variance,
        min(above.n, below.n),
        min(above.effect, below.effect, key=lambda e: math.inf if e.batches is None else e.batches),
    )
    return _interval(found, margin, bound, confidence)


class _Log(NamedTuple):
    log_ratio: float
    variance: float
    n: int
    effect: Effect = INDEPENDENT


def _of(signed: Sequence[tuple[Sample, int]], effect_of: EffectOf) -> _Log | Insufficient:
    n = len(signed[0][0])
    if n < 2:
        return Insufficient(reason="a spread needs two pairs", n=n, n_needed=2)
    if any(not (x >= 0).all() or not np.isfinite(x).all() for x, _ in signed):
        raise ValueError("wanted finite values of at least 0")
    if any(x.sum() <= 0 for x, _ in signed):
        return Insufficient(reason="a sum is 0", n=n, n_needed=None)
    log_ratio = sum(sign * math.log(float(x.mean())) for x, sign in signed)
    pulls = np.asarray(np.sum([sign * (x / x.mean() - 1) for x, sign in signed], axis=0))
    effect = effect_of(pulls)
    return _Log(log_ratio, float(pulls @ pulls) / (n * (n - 1)) * effect.ratio, n, effect)


def _interval(
    found: _Log, margin: float, bound: Bound, confidence: float
) -> Interval | Insufficient:
    error = math.sqrt(found.variance)
    if error <= 1e-15:
        return Insufficient(reason="the ratios do not vary", n=found.n, n_needed=None)
    reach = float(norm.ppf(found.effect.confidence(confidence))) * error
    z = (found.log_ratio - math.log(margin)) / error
    return found.effect.with_students_p(
        Interval(
            estimate=math.exp(found.log_ratio),
            lower=math.exp(found.log_ratio - reach),
            upper=math.exp(found.log_ratio + reach),
            p_fail=float(norm.sf(z) if bound == "max" else norm.cdf(z)),
            n=found.n,
            method=METHOD,
        )
    )
