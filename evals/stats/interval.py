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


@dataclass(frozen=True, slots=True, kw_only=True)
class Insufficient:
    """No evidence: why, on how many pairs, and how many the method needs (`None`: unknown)."""

    reason: str
    n: int
    n_needed: int | None
