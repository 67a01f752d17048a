"""Design effects: the variance of a dependent series' mean, relative to independent draws.

Requests that run side by side share a machine, a batch and a cache, so neighbours in time are slow
or wrong together. Repeats of one prompt share the prompt.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm
from scipy.stats import t as student

from evals.stats.interval import Insufficient, Interval

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BATCHES = 50
MIN_BATCHES = 8
_SUSPICION = 0.05
"""p value below which a series counts as dependent."""
_PROOF = 0.001
_CORRELATED_Z = 1.28
"""Normal score of the correlation of successive means above which batches are joined in pairs."""


class Effect(NamedTuple):
    """A design effect, and the means that it was estimated from."""

    ratio: float = 1.0
    """Variance of the mean / variance with as many independent draws, at least 1."""
    batches: int | None = None
    """`None`: the variance is known well enough for the normal law."""
    proved: bool = False
    """Whether the dependence is significant at a level of .001."""
    settled: bool = True
    """Whether the series is long enough for batches that are no longer correlated."""

    def confidence(self, wanted: float) -> float:
        """Return the level at which a normal limit reaches as far as Student's at `wanted`."""
        if self.batches is None:
            return wanted
        return float(norm.cdf(student.ppf(wanted, self.batches - 1)))

    def with_students_p(self, found: Interval | Insufficient) -> Interval | Insufficient:
        """Return limits with Student's p value in place of the normal law's, and the doubt."""
        if self.batches is None or isinstance(found, Insufficient):
            return found
        p = found.p_fail
        if 0 < p < 1:
            p = float(student.sf(norm.isf(p), self.batches - 1))
        return replace(found, p_fail=p, doubt=found.doubt or self.doubt)

    @property
    def doubt(self) -> str | None:
        """Return a warning if the series is too short to show the range of its dependence."""
        if self.settled:
            return None
        return (
            "neighbours in time depend on each other over stretches that are long beside the whole "
            "run; run it longer, or spread it over hours"
        )

    def degrees(self, n: int) -> int:
        """Return the degrees of freedom of Student's t for n values."""
        return n - 1 if self.batches is None else min(n, self.batches) - 1


INDEPENDENT = Effect()


def in_time(values: Floats, strata: Integers | None = None) -> Effect:
    """Return the design effect of neighbours in a series, which is given in order of time.

    Batch means: the series is cut into 50 batches of m, and these are joined in pairs, down to 8 at
    the least, while successive means are correlated (their lag-1 correlation r, with a normal score
    above 1.28). The ratio is m·s²(means)/s²(values), the largest over the lengths tried; if the
    dependence is proved (p < .001), times 1 + 2r for the correlation that remains between batches.
    It is at least 1 and at most n. Limits then use Student's t with one degree of freedom fewer
    than batches. If the dispersion of neither long nor short batches has p < .05 (χ²), the ratio is
    1: estimating a dependence that does not exist would cost a tenth of the evidence.

    Values are centred at their stratum's mean, so cohorts that ran one after the other do not count
    as dependence. n < 4, and values that do not vary, give 1.

    Source: batch means, G. Fishman, Management Science 24 (1978) 510–521; the dispersion's test, W.
    Cochran, Biometrics 10 (1954) 417–451.
    """
    n = len(values)
    centred = _centred(values, strata)
    variance = float(centred @ centred) / max(n, 1)
    if n < 4 or variance <= 1e-30:
        return Effect()
    events = variance**2 * n / float(np.mean(centred**4))
    p = min(_dispersion_p(centred, variance, events, most) for most in (BATCHES, n // 5))
    if p >= _SUSPICION:
        return Effect()
    proved, found = p < _PROOF, _batched(centred, variance, min(BATCHES, n // 2))
    tried = [found]
    while found.correlated and found.batches // 2 >= MIN_BATCHES:
        found = _batched(centred, variance, found.batches // 2)
        tried.append(found)
    ratio = max(one.joined_ratio if proved else one.ratio for one in tried)
    return Effect(min(max(1.0, ratio), float(n)), found.batches, proved, not found.correlated)


def _dispersion_p(centred: Floats, variance: float, events: float, most: int) -> float:
    """Return the χ² p value of "batches vary as independent values would".

    The batches have at least three events on average, enough for the χ² approximation.
    """
    batches = int(max(2, min(most, events / 3, len(centred) // 2)))
    ratio = _batched(centred, variance, batches).ratio
    return float(chi2.sf(ratio * (batches - 1), batches - 1))


def of_clusters(values: Floats, clusters: Integers, strata: Integers | None = None) -> float:
    """Return the design effect of clusters, such as a prompt's repeats; 1 for clusters of one.

    Σ over clusters of (Σ values − mean)² over Σ (value − mean)², times G/(G − 1)·(n − 1)/n for G
    clusters of n values. It is below 1 if the values of a cluster are negatively correlated.

    Source: L. Kish, Survey Sampling (1965) section 5.4.
    """
    _, cluster = np.unique(clusters, return_inverse=True)
    groups = int(cluster.max()) + 1 if len(cluster) else 0
    if groups in (0, 1, len(values)):
        return 1.0
    centred = _centred(values, strata)
    squares = float(centred @ centred)
    if squares <= 1e-30:
        return 1.0
    sums = np.bincount(cluster, weights=centred)
    n = len(values)
    return float(sums @ sums) / squares * groups / (groups - 1) * (n - 1) / n


def both(time: Effect, clusters: float, shared: float = 1.0) -> Effect:
    """Return the effect of neighbours and clusters together: their sum minus the shared part.

    `shared` is the effect of clusters within batches of time: of repeats that ran side by side.

    Source: two-way clustering, A. Cameron, J. Gelbach and D. Miller, Journal of Business and
    Economic Statistics 29 (2011) 238–249.
    """
    return time._replace(ratio=max(1.0, time.ratio + clusters - shared))


def joined(first: Effect, second: Effect) -> tuple[Effect, Effect]:
    """Return both arms' effects; if one is proved, the larger one for both.

    Otherwise an arm that by chance missed the bursts would look independent.
    """
    if not (first.proved or second.proved):
        return first, second
    ratio = max(first.ratio, second.ratio)
    batches = fewest((first, second)).batches
    same = Effect(ratio, batches, proved=True, settled=first.settled and second.settled)
    return same, same


def fewest(effects: Sequence[Effect]) -> Effect:
    """Return the effect that was estimated from the fewest batches."""
    return min(effects, key=lambda effect: effect.batches or math.inf)


def _centred(values: Floats, strata: Integers | None) -> Floats:
    if strata is None or len(values) == 0:
        return values - (values.mean() if len(values) else 0.0)
    _, stratum = np.unique(strata, return_inverse=True)
    means = np.bincount(stratum, weights=values) / np.bincount(stratum)
    return np.asarray(values - means[stratum])


def _correlation(centred: Floats) -> float:
    """Return the lag-1 correlation, corrected for its bias of −1/n."""
    squares = float(centred @ centred)
    if squares <= 1e-30:
        return 0.0
    return float(centred[1:] @ centred[:-1]) / squares + 1 / len(centred)


class _Batched(NamedTuple):
    batches: int
    ratio: float
    correlation: float
    """Of successive means."""

    @property
    def correlated(self) -> bool:
        return self.correlation * math.sqrt(self.batches) > _CORRELATED_Z

    @property
    def joined_ratio(self) -> float:
        """Return the ratio, increased for the correlation of successive batches."""
        return self.ratio * (1 + 2 * max(self.correlation, 0.0))


def _batched(centred: Floats, variance: float, batches: int) -> _Batched:
    """Cut a series into equal batches; the oldest values that do not fill one are left out."""
    length = len(centred) // batches
    means = centred[len(centred) - batches * length :].reshape(batches, length).mean(axis=1)
    ratio = length * float(np.var(means, ddof=1)) / variance
    return _Batched(batches, ratio, _correlation(means - means.mean()))
