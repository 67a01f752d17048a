"""The greatest rate of arrivals at which an arm holds a share of good requests."""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy.stats import beta

from collector.contract import Arm
from evals.errors import PolicyError
from evals.evidence.columns import Evidence, FloatColumn, Side
from evals.gate.warmup import prepared
from evals.policy import Policy
from evals.stats import dependence

CLOSE: Final = 1.25
"""Ratio of a rate that does not hold to one that does, from which on the search goes no further."""
_CONFIDENCE: Final = 0.95


class Held(NamedTuple):
    """An arm's share of good requests at one rate, with one-sided limits, 95 % each."""

    n: int
    share: float | None
    """`None` if whether a request was good is unknown."""
    lower: float
    upper: float

    def holds(self, wanted: float) -> bool | None:
        """Return whether the share is at least `wanted`; `None` if the limits do not say."""
        if self.lower >= wanted:
            return True
        return False if self.upper < wanted else None


class Greatest(NamedTuple):
    """The result of the rates tried, for one arm."""

    holds: float | None
    """The greatest rate that holds, as does every lower one tried; `None`: not even the lowest."""
    fails: float | None
    """The least rate above it that does not hold; `None`: none tried."""


Probes = Mapping[float, Mapping[Arm, bool | None]]
"""By rate: whether each arm holds it; `None` is undecided."""


def wanted_share(policy: Policy) -> float:
    """Return the share that a rate must hold; raises `PolicyError` if the policy names none."""
    if policy.goodput is None or policy.goodput.share is None:
        raise PolicyError(
            f"{policy.name}: goodput.share: missing; wanted bounds and the share of requests that "
            "must be within them, such as `goodput: {ttft_ms: 500, share: 0.95}`"
        )
    return policy.goodput.share


def held(evidence: Evidence, policy: Policy) -> dict[Arm, Held]:
    """Return each arm's share over all pairs of a rollout at one rate.

    Clopper and Pearson's limits, on counts scaled down by the design effect of neighbours in time.
    An unknown request counts as beyond the bounds for the lower limit, as good for the upper one.
    """
    ready = prepared(evidence, policy)
    return {arm: _held(ready.side(arm)) for arm in Arm}


def _held(side: Side) -> Held:
    good = side.score("goodput")[np.argsort(side.start_unix_ns, kind="stable")]
    known = not np.isnan(good).any()
    return Held(
        n=len(good),
        share=float(good.mean()) if known and len(good) else None,
        lower=_limit(np.nan_to_num(good, nan=0.0), upper=False),
        upper=_limit(np.nan_to_num(good, nan=1.0), upper=True),
    )


def _limit(good: FloatColumn, *, upper: bool) -> float:
    if len(good) == 0:
        return float(upper)
    effect = dependence.in_time(good)
    n, x = len(good) / effect.ratio, float(good.sum()) / effect.ratio
    level = effect.confidence(_CONFIDENCE)
    if upper:
        return 1.0 if x >= n else float(beta.ppf(level, x + 1, n - x))
    return 0.0 if x <= 0 else float(beta.ppf(1 - level, x, n - x + 1))


def greatest(probes: Probes, arm: Arm) -> Greatest:
    """Return what the rates tried say of an arm."""
    best: float | None = None
    for rate in sorted(probes):
        if not probes[rate][arm]:
            break
        best = rate
    above = (rate for rate in sorted(probes) if probes[rate][arm] is False)
    return Greatest(best, next((rate for rate in above if best is None or rate > best), None))


def next_rate(probes: Probes, lowest: float, highest: float) -> float | None:
    """Return the rate to try next, `None` at the end; a function of the probes alone.

    First the ends; then, for each arm, the geometric mean of the greatest rate that holds and the
    next one that does not, or is undecided, until their ratio is at most `CLOSE`.
    """
    if lowest not in probes:
        return lowest
    best = {arm: greatest(probes, arm).holds for arm in Arm}
    if highest not in probes:
        return highest if any(rate is not None for rate in best.values()) else None
    for rate in best.values():
        above = _next_above(sorted(probes), rate)
        if rate is None or above is None or above / rate <= CLOSE:
            continue
        middle = float(f"{math.sqrt(rate * above):.3g}")
        if middle not in probes:
            return middle
    return None


def _next_above(rates: Sequence[float], rate: float | None) -> float | None:
    return next((one for one in rates if rate is not None and one > rate), None)
