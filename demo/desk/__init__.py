"""A made-up support desk: its exchanges, in four cohorts and two splits that share no answer."""

from demo.desk.example import COHORTS, SPLITS, Cohort, Example, Split
from demo.desk.workload import MAX_TOKENS, examples, workload_lines

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
