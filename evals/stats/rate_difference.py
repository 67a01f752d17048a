"""The difference of two ratios of counts, such as shares of tokens: the delta method."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from evals.stats.dependence import Effect, fewest
from evals.stats.interval import Bound, Insufficient, Interval

METHOD = "delta-difference-of-rates/1"

Sample = NDArray[np.float64]


class Rate(NamedTuple):
    """One arm's ratio of sums, Σ counts / Σ totals; entry i of both is of one request."""

    counts: Sample
    totals: Sample

    @property
    def value(self) -> float:
        """The ratio."""
        return float(self.counts.sum() / self.totals.sum())

    @property
    def pulls(self) -> Sample:
        """The first-order effect of each request on the ratio, times n."""
        return np.asarray((self.counts - self.value * self.totals) / self.totals.mean())


def rate_difference(
    value: float,
    parts: Sequence[tuple[Sample, Effect]],
    *,
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return a difference of rates with limits value ± z·√Σ Σu²·effect/(n(n − 1)).

    Over independent parts of n pulls u: of pairs, one part with the candidate's pulls minus the
    baseline's; of arms that answered different requests, a part each. Student's t stands for z
    where a design effect was estimated. Below two values, and if nothing varies, `Insufficient`.

    Source: W. Cochran, Sampling Techniques (1977) sections 6.3 and 6.4.
    """
    n = min(len(pulls) for pulls, _ in parts)
    if n < 2:
        return Insufficient(reason="a spread needs two pairs", n=n, n_needed=2)
    variance = sum(
        float(pulls @ pulls) * effect.ratio / (len(pulls) * (len(pulls) - 1))
        for pulls, effect in parts
    )
    if variance <= 1e-24:
        return Insufficient(reason="the rates do not vary", n=n, n_needed=None)
    effect, error = fewest([effect for _, effect in parts]), math.sqrt(variance)
    reach = float(norm.ppf(effect.confidence(confidence))) * error
    z = (value - margin) / error
    return effect.with_students_p(
        Interval(
            estimate=value,
            lower=value - reach,
            upper=value + reach,
            p_fail=float(norm.sf(z) if bound == "max" else norm.cdf(z)),
            n=n,
            method=METHOD,
        )
    )
