"""To which pairs a scored metric applies: by what they carry, not by whether a score exists."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

BoolColumn = NDArray[np.bool_]
FloatColumn = NDArray[np.float64]

NEEDS: Final[Mapping[str, str]] = {
    "task_completion": "reference",
    "groundedness": "context",
    "schema_validity": "schema",
}
"""What the shipped evaluators of a metric need a generation to carry, by `carries`."""
GREEDY: Final = frozenset({"parity"})
"""Metrics of pairs that were both asked for at temperature 0."""
OF_THE_BASELINE: Final[Mapping[str, Callable[[FloatColumn], FloatColumn]]] = {
    "parity": np.ones_like,
    "preference": lambda candidate: 1 - candidate,
}
"""Metrics that score a candidate's answer against the baseline's: what the baseline's then has.

An answer is the same as itself, and what one side is preferred by, the other one lacks.
"""


class Applicability(NamedTuple):
    """One entry a pair, for one metric."""

    owed: BoolColumn
    """Where a score is owed by either side that answered."""
    unsure: BoolColumn
    """Where nothing says whether it applies, though it does elsewhere: cohorts without any sign of
    it, whose prompts are not known to lack what it needs."""

    def take(self, rows: BoolColumn) -> "Applicability":
        """Return some pairs alone."""
        return Applicability(self.owed[rows], self.unsure[rows])


def applicability(
    judged: BoolColumn, carries: BoolColumn, known: BoolColumn, cohort_of: NDArray[np.int64]
) -> Applicability:
    """Return where a metric applies.

    `judged` says where an evaluator gave a score or a reason for none, `carries` where a prompt has
    what the metric needs, `known` where that was recorded. If anything was scored without it, as by
    an evaluator that needs nothing, what is carried says nothing of the metric.
    """
    if (judged & known & ~carries).any():
        known = np.zeros_like(known)
    carries = carries & known
    sign = judged | carries
    near = in_cohorts_of(cohort_of, sign)
    return Applicability(sign | (~known & near), ~known & ~near & near.any())


def in_cohorts_of(cohort_of: NDArray[np.int64], rows: BoolColumn) -> BoolColumn:
    """Return the pairs of the cohorts, or of none, that any of the rows belongs to."""
    named = np.zeros(int(cohort_of.max(initial=-1)) + 2, dtype=np.bool_)
    named[cohort_of[rows]] = True  # −1, no cohort, is the last entry
    return np.asarray(named[cohort_of])
