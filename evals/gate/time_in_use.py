"""How long an arm was in use, and how many requests it had in flight."""

from typing import NamedTuple

import numpy as np

from evals.evidence.columns import BoolColumn, Counts, Side


class TimeInUse(NamedTuple):
    """The time of an arm's answers; all are 0 if no usable time is known."""

    busy_s: float
    """Seconds with an answer in flight."""
    flown_s: float
    """Sum over the answers of their seconds in flight."""
    elapsed_s: float
    """Seconds from the first start to the last end, summed over the launches of the server."""

    @property
    def in_flight(self) -> float | None:
        """Mean answers in flight while there are any."""
        return self.flown_s / self.busy_s if self.busy_s > 0 else None


def time_in_use(side: Side, rows: BoolColumn | None = None) -> TimeInUse:
    """Return the time of an arm's answers with usable durations, or of those in the mask."""
    timed = side.present & ~side.times_flagged & ~side.fallback & (side.seconds["e2e"] > 0)
    timed &= True if rows is None else rows
    order = np.argsort(side.start_unix_ns[timed], kind="stable")
    start_ns = side.start_unix_ns[timed][order]
    end_ns = start_ns + np.rint(side.seconds["e2e"][timed][order] * 1e9).astype(np.int64)
    if len(start_ns) == 0:
        return TimeInUse(0.0, 0.0, 0.0)
    reached_ns = np.concatenate([start_ns[:1], np.maximum.accumulate(end_ns)[:-1]])
    busy_ns = np.maximum(end_ns - np.maximum(start_ns, reached_ns), 0)
    launches = side.column("launch")[timed][order].astype(str)
    elapsed_ns = sum(_span(launches == name, start_ns, end_ns) for name in np.unique(launches))
    flown_ns = (end_ns - start_ns).sum()
    return TimeInUse(float(busy_ns.sum()) / 1e9, float(flown_ns) / 1e9, elapsed_ns / 1e9)


def _span(rows: BoolColumn, start_ns: Counts, end_ns: Counts) -> int:
    return int(end_ns[rows].max() - start_ns[rows].min())
