"""Synthetic support-desk exchanges, in four cohorts and two splits without common answers."""

from training.desk.example import COHORTS, SPLITS, Cohort, Example, Split
from training.desk.workload import MAX_TOKENS, examples, workload_lines

__all__ = [
    "COHORTS",
    "MAX_TOKENS",
    "SPLITS",
    "Cohort",
    "Example",
    "Split",
    "examples",
    "workload_lines",
]
