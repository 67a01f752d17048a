"""Compute a p value from limits: the smallest level at which they exclude the margin."""

import math
from collections.abc import Callable

from evals.stats.interval import Bound

_BISECTIONS = 25  # a relative error of 1e-6 in the level
Limit = Callable[[float], float | None]
"""Returns the limit at a one-sided level; infinite if unbounded, `None` if there is none."""


def p_beyond(
    lower: Limit, upper: Limit, estimate: float | None, *, margin: float, bound: Bound
) -> float:
    """Return the smallest level at which the limit on the failing side still excludes the margin.

    If the estimate is within the margin, the level is above one half: one minus the level at which
    the other limit excludes the margin. Without an estimate only the limits decide.
    """
    failing, passing = (lower, upper) if bound == "max" else (upper, lower)
    sign = 1.0 if bound == "max" else -1.0

    def fails(alpha: float) -> bool:
        limit = failing(alpha)
        return limit is not None and sign * limit > sign * margin

    def passes(alpha: float) -> bool:
        limit = passing(alpha)
        return limit is not None and sign * limit <= sign * margin

    if estimate is None:
        return _smallest_level(fails) or 1.0
    if sign * estimate > sign * margin:
        return _smallest_level(fails) or 0.5
    return 1 - (_smallest_level(passes) or 0.5)


def _smallest_level(holds: Callable[[float], bool]) -> float | None:
    """Return the smallest level in (1e-15, 0.5] at which `holds`, which is monotone in it."""
    if not holds(0.5):
        return None
    low, high = math.log(1e-15), math.log(0.5)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(math.exp(middle)) else (middle, high)
    return math.exp(high)
