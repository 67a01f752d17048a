"""What a statistic returns: limits, or the reason why there are none."""

from dataclasses import dataclass
from typing import Literal

Bound = Literal["max", "min"]
"""The side on which a margin stands: `max` where more is worse, `min` where less is worse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with one-sided limits, each at the confidence that the caller asked for.

    `estimate`, `lower` or `upper` is `None` where it does not exist or is infinite: the data then
    put no bound on that side, and nothing may be concluded from it. `p_fail` is the one-sided p
    value against "no worse than the margin".
    """

    estimate: float | None
    lower: float | None
    upper: float | None
    p_fail: float
    n: int
    method: str
    doubt: str | None = None
    """Why the limits may reach too short, so that they prove no pass."""
    p_worse: float | None = None
    """One-sided p value against "worse than the margin", if it is not 1 − `p_fail`."""
    launches: "LaunchSpread | None" = None
    """What the single launches showed, if the limits hold over launches."""

    @property
    def against_worse(self) -> float:
        """Return the one-sided p value against "worse than the margin"."""
        return 1 - self.p_fail if self.p_worse is None else self.p_worse


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpread:
    """A ratio launch by launch."""

    ratios: tuple[float, ...]
    """In order of time; infinite or NaN where it has no end."""
    limits: Interval
    """Over the launches alone."""
    binds: bool
    """Whether these, and not those over requests, are the limit on the margin's side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insufficient:
    """No evidence: why, on how many pairs, and how many the method needs (`None`: unknown)."""

    reason: str
    n: int
    n_needed: int | None
