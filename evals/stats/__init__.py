"""Statistics, one subject per file; each returns limits or `Insufficient`."""

from evals.stats.interval import Bound, Insufficient, Interval

__all__ = ["Bound", "Insufficient", "Interval"]
