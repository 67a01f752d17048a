"""Ratios of sums, such as tokens, or cost a token: the delta method on the log scale."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from evals.stats.interval import Bound, Insufficient, Interval

METHOD = "delta-log-ratio-of-sums/1"

Sample = NDArray[np.float64]


class Arm(NamedTuple):
    """One arm's sums: factor·Σ numerator, over Σ denominator where there is one."""

    numerator: Sample
    denominator: Sample | None
    clusters: NDArray[np.int64]
    factor: float = 1.0

    def signed(self) -> list[tuple[Sample, int]]:
        """Return the samples with the powers in which their sums enter."""
        lower = [] if self.denominator is None else [(self.denominator, -1)]
        return [(self.numerator, 1), *lower]


def ratio_of_sums(
    numerators: Sequence[Sample],
    denominators: Sequence[Sample],
    *,
    clusters: NDArray[np.int64],
    factor: float = 1.0,
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return factor·Π Σx / Π Σy, x over the numerators and y over the denominators.

    Paired: entry i of every sample is of pair i, and `clusters` numbers its prompt. One numerator
    and one denominator are a ratio of sums; two of each a ratio of two rates. The logarithm is
    linear in the samples' means near them: pair i counts u = Σ x_i/x̄ − Σ y_i/ȳ, less what as many
    samples of 1 would; the error is that of the clusters' sums of u, with the factor G/(G − 1) for
    G clusters. Each limit is exp(log θ ± z·error), one-sided at `confidence`. Fewer than two
    clusters, a sum of 0 and values without spread are `Insufficient`.

    Source: W. Cochran, Sampling Techniques (1977) sections 6.3 and 9A.
    """
    n = len(clusters)
    signed = [(x, 1) for x in numerators] + [(y, -1) for y in denominators]
    found = _of(signed, clusters)
    if isinstance(found, Insufficient):
        return found
    return _interval(
        math.log(factor) + found.log_ratio, math.sqrt(found.variance), n, margin, bound, confidence
    )


def unpaired_ratio_of_sums(
    candidate: Arm, baseline: Arm, *, margin: float, bound: Bound, confidence: float
) -> Interval | Insufficient:
    """Return the ratio of two arms that answered different requests: their variances add.

    n is that of the smaller arm; otherwise as `ratio_of_sums`.
    """
    found = [_of(arm.signed(), arm.clusters) for arm in (candidate, baseline)]
    log_ratio = math.log(candidate.factor / baseline.factor)
    variance = 0.0
    for sign, part in zip((1, -1), found, strict=True):
        if isinstance(part, Insufficient):
            return part
        log_ratio += sign * part.log_ratio
        variance += part.variance
    n = min(len(candidate.clusters), len(baseline.clusters))
    return _interval(log_ratio, math.sqrt(variance), n, margin, bound, confidence)


class _Log(NamedTuple):
    log_ratio: float
    variance: float


def _of(signed: Sequence[tuple[Sample, int]], clusters: NDArray[np.int64]) -> _Log | Insufficient:
    n = len(clusters)
    _, cluster = np.unique(clusters, return_inverse=True)
    groups = int(cluster.max()) + 1 if n else 0
    if groups < 2:
        return Insufficient(reason="a spread needs two pairs", n=n, n_needed=2)
    if any(not (x >= 0).all() or not np.isfinite(x).all() for x, _ in signed):
        raise ValueError("wanted finite values of at least 0")
    if any(x.sum() <= 0 for x, _ in signed):
        return Insufficient(reason="a sum is 0", n=n, n_needed=None)
    log_ratio = sum(sign * math.log(float(x.mean())) for x, sign in signed)
    pulls = np.sum([sign * (x / x.mean() - 1) for x, sign in signed], axis=0)
    by_cluster = np.bincount(cluster, weights=pulls)
    return _Log(log_ratio, float((by_cluster**2).sum()) * groups / (groups - 1) / n**2)


def _interval(
    log_ratio: float, error: float, n: int, margin: float, bound: Bound, confidence: float
) -> Interval | Insufficient:
    if error <= 1e-15:
        return Insufficient(reason="the ratios do not vary", n=n, n_needed=None)
    reach, z = float(norm.ppf(confidence)) * error, (log_ratio - math.log(margin)) / error
    return Interval(
        estimate=math.exp(log_ratio),
        lower=math.exp(log_ratio - reach),
        upper=math.exp(log_ratio + reach),
        p_fail=float(norm.sf(z) if bound == "max" else norm.cdf(z)),
        n=n,
        method=METHOD,
    )
