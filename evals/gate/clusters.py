"""Repeats of one prompt are one cluster: how they are counted and averaged."""

import numpy as np

from evals.evidence import BoolColumn, Counts, Evidence, FloatColumn
from evals.gate.cells import Cell
from evals.policy import Policy
from evals.stats import Insufficient, Interval
from evals.stats.tango import paired_difference


def clusters(evidence: Evidence, rows: BoolColumn) -> int:
    """Count the prompts among the rows."""
    return count(evidence.prompts[rows])


def count(prompts: Counts) -> int:
    """Count the prompts, given in ascending order."""
    return int(np.count_nonzero(np.diff(prompts))) + 1 if len(prompts) else 0


def by_prompt(values: FloatColumn, prompts: Counts) -> FloatColumn:
    """Return the mean of each prompt's repeats: one independent value a cluster."""
    first = np.flatnonzero(np.diff(prompts, prepend=-1))
    if len(first) == len(prompts):
        return values
    return np.asarray(np.add.reduceat(values, first) / np.diff(first, append=len(prompts)))


def share_difference(
    candidate: BoolColumn, baseline: BoolColumn, clusters: int, cell: Cell, policy: Policy
) -> Interval:
    """Compare shares with counts scaled down to one draw a prompt.

    Repeats of one prompt are taken as fully dependent: conservative, and exact where there are
    none.
    """
    scale = clusters / len(candidate)
    interval = paired_difference(
        float((candidate & ~baseline).sum()) * scale,
        float((baseline & ~candidate).sum()) * scale,
        clusters,
        margin=cell.rule.margin,
        bound=cell.rule.bound,
        confidence=1 - policy.alpha_pass,
    )
    if isinstance(interval, Insufficient):
        raise TypeError("wanted at least one pair")
    return interval
