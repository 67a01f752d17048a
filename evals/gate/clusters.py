"""Repeats of one prompt are one cluster: how they are counted and averaged."""

import numpy as np

from evals.evidence import BoolColumn, Counts, Evidence, FloatColumn
from evals.gate.cells import Cell
from evals.policy import Policy
from evals.stats import Insufficient, Interval
from evals.stats.tango import paired_difference


def clusters(evidence: Evidence, rows: BoolColumn) -> int:
    """Count the prompts among the rows."""
    return len(np.unique(evidence.prompts[rows]))


def by_prompt(values: FloatColumn, prompts: Counts) -> FloatColumn:
    """Return the mean of each prompt's repeats: one independent value a cluster."""
    _, cluster = np.unique(prompts, return_inverse=True)
    return np.asarray(np.bincount(cluster, weights=values) / np.bincount(cluster))


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
