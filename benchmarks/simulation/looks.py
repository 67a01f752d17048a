"""A few looks at latency quantiles while traffic flows, declared in advance."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evals.stats.interval import Bound, Insufficient, Interval
from evals.stats.quantile_ratio import quantile_ratio


class Look(NamedTuple):
    """A number of pairs at which a test is made, and the level spent on it."""

    pairs: int
    alpha: float


LOOKS = (
    Look(300, 0.001), Look(600, 0.003), Look(1_200, 0.006), Look(2_400, 0.010), Look(5_000, 0.04013)
)  # fmt: skip
"""Together they spend .05, since looks at growing data are correlated."""


def last_look(pairs: int, looks: tuple[Look, ...] = LOOKS) -> Look | None:
    """Return the last look that this number of pairs has reached, `None` before the first."""
    reached = [look for look in looks if look.pairs <= pairs]
    return reached[-1] if reached else None


def quantile_ratio_at_look(
    candidate: NDArray[np.float64],
    baseline: NDArray[np.float64],
    *,
    q: float,
    margin: float,
    bound: Bound,
    looks: tuple[Look, ...] = LOOKS,
) -> Interval | Insufficient:
    """Return the ratio of quantiles at the last look, one-sided at the level spent there.

    Paired, in order of arrival: pairs after the look do not count until the next one, so calling
    this more often spends nothing. The chance that any look passes (or any fails) wrongly is
    `spending.ever_passes` of the levels. `Insufficient` before the first look, so for n = 0 and
    n = 1 too.

    Source: K. Lan and D. DeMets, Biometrika 70 (1983) 659–663; limits as in `quantile_ratio`.
    """
    look = last_look(len(candidate), looks)
    if look is None:
        first = looks[0].pairs
        return Insufficient(reason=f"the first look is at {first} pairs", n=len(candidate),
                            n_needed=first)  # fmt: skip
    return quantile_ratio(
        candidate[: look.pairs],
        baseline[: look.pairs],
        q=q,
        draws=(look.pairs, look.pairs),
        margin=margin,
        bound=bound,
        confidence=1 - look.alpha,
    )
