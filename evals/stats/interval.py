"""The results of a statistic: limits, or the reason why there are none."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

Bound = Literal["max", "min"]
"""The side of a margin: `max` if more is worse, `min` if less is worse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with one-sided limits, each at the confidence that the caller asked for.

    `estimate`, `lower` or `upper` is `None` if it does not exist or is infinite: the data then
    give no bound on that side, and nothing may be concluded from it. `p_fail` is the one-sided p
    value against "no worse than the margin".
    """

    estimate: float | None
    lower: float | None
    upper: float | None
    p_fail: float
    n: int
    method: str
    doubt: str | None = None
    """Why the limits may be too narrow; such limits prove no pass."""
    p_worse: float | None = None
    """One-sided p value against "worse than the margin", if it is not 1 − `p_fail`."""
    launches: "LaunchSpread | None" = None
    """The single launches' values, if the limits hold over launches."""

    @property
    def against_worse(self) -> float:
        """Return the one-sided p value against "worse than the margin"."""
        return 1 - self.p_fail if self.p_worse is None else self.p_worse


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpread:
    """The ratio, or the difference, of each launch."""

    values: tuple[float, ...]
    """In order of time; infinite or NaN if a launch has no finite one."""
    limits: Interval
    """Limits over the launches alone."""
    binds: bool
    """Whether these limits, not those over requests, bound the margin's side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insufficient:
    """No evidence: the reason, the pairs seen, and the pairs that the method needs (or `None`)."""

    reason: str
    n: int
    n_needed: int | None


def exponential(logs: Interval, method: str) -> Interval:
    """Return the interval of a ratio, given that of its logarithm."""
    estimate, lower, upper = (
        None if x is None else math.exp(x) for x in (logs.estimate, logs.lower, logs.upper)
    )
    return replace(logs, estimate=estimate, lower=lower, upper=upper, method=method)


def outer_limit(
    outer: Callable[[float, float], float], one: float | None, other: float | None
) -> float | None:
    """Return the outer of two limits by `min` or `max`; none if either is."""
    return None if one is None or other is None else outer(one, other)
