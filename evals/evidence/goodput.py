"""Goodput: which requests were answered within declared bounds on their times."""

import numpy as np

from evals.evidence.columns import BoolColumn, FloatColumn, Side
from evals.policy.sections import Goodput


def within_bounds(side: Side, bounds: Goodput) -> FloatColumn:
    """Return 1 for each request within every bound, 0 for one beyond a bound; NaN if unknown.

    A failed request is beyond. A request is unknown if it never arrived, another route answered it,
    or a bounded time is unknown and no other is beyond its bound. The time per output token, which
    answers of one token do not have, does not bound these.
    """
    beyond = np.zeros(len(side.present), dtype=np.bool_)
    unknown = side.fallback | ~side.present
    for metric, seconds in bounds.seconds.items():
        times = side.latency_s(metric)
        bounded = _defined(side, metric)
        with np.errstate(invalid="ignore"):
            beyond |= bounded & (times > seconds)
        unknown |= bounded & np.isnan(times)
    beyond |= side.present & side.failed
    beyond &= ~side.fallback
    return np.where(beyond, 0.0, np.where(unknown, np.nan, 1.0))


def _defined(side: Side, metric: str) -> BoolColumn:
    one_token = (side.output_tokens <= 1) & ~side.failed
    return ~one_token if metric == "tpot" else np.ones_like(one_token)
