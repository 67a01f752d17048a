"""Decide to which pairs a metric applies, by their recorded content, not by existing scores."""

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
"""Content that a metric's shipped evaluators require, as named in a generation's `carries`."""
GREEDY: Final = frozenset({"parity"})
"""Metrics of pairs in which both requests had temperature 0."""
OF_THE_BASELINE: Final[Mapping[str, Callable[[FloatColumn], FloatColumn]]] = {
    "parity": np.ones_like,
    "preference": lambda candidate: 1 - candidate,
}
"""Metrics that score the candidate's answer against the baseline's, with the baseline's score.

The baseline's answer is identical to itself (parity 1), and its preference is 1 − the candidate's.
"""


class Applicability(NamedTuple):
    """The applicability of one metric, with one entry per pair."""

    owed: BoolColumn
    """The metric applies: each side that answered must have a score."""
    unsure: BoolColumn
    """Unknown: the metric applies in other cohorts; this cohort has no sign of it, but the prompt
    is not known to lack the required content either."""

    def take(self, rows: BoolColumn) -> "Applicability":
        """Return only these pairs."""
        return Applicability(self.owed[rows], self.unsure[rows])


def applicability(
    judged: BoolColumn, carries: BoolColumn, known: BoolColumn, cohort_of: NDArray[np.int64]
) -> Applicability:
    """Return where a metric applies.

    `judged`: an evaluator gave a score or a reason for none. `carries`: the prompt has the content
    that the metric requires. `known`: that was recorded. If any pair was judged without that
    content, the evaluator does not require it, and `known` is ignored.
    """
    if (judged & known & ~carries).any():
        known = np.zeros_like(known)
    carries = carries & known
    sign = judged | carries
    near = in_cohorts_of(cohort_of, sign)
    return Applicability(sign | (~known & near), ~known & ~near & near.any())


def in_cohorts_of(cohort_of: NDArray[np.int64], rows: BoolColumn) -> BoolColumn:
    """Return all pairs of the cohorts that any of the rows belongs to ("no cohort" is one too)."""
    named = np.zeros(int(cohort_of.max(initial=-1)) + 2, dtype=np.bool_)
    named[cohort_of[rows]] = True  # −1, no cohort, is the last entry
    return np.asarray(named[cohort_of])
