"""Measuring a cell, and how many pairs would settle it."""

import numpy as np
from scipy.stats import norm

from collector.contract import Reason
from evals.evidence import BoolColumn, Evidence
from evals.gate.cells import Cell
from evals.gate.latency_cells import measure_latency
from evals.gate.measured import Measurement, Obstacle
from evals.gate.score_cells import measure_failures, measure_scores
from evals.gate.split_cells import measure_split
from evals.gate.sum_cells import measure_sums
from evals.policy import Policy

_MOST_PAIRS = 10_000_000


def measure(cell: Cell, evidence: Evidence, policy: Policy) -> Measurement:
    """Measure one cell; an obstacle leaves what was computed in place, for the report."""
    scope = evidence.scope(cell.cohort)
    absent = _absent(cell, evidence, scope)
    if absent is not None:
        return Measurement(n=0, prompts=0, obstacle=absent)
    if not cell.paired:
        return measure_split(cell, evidence, scope, policy)
    if cell.metric.kind in ("tokens", "cost"):
        return measure_sums(cell, evidence, scope, policy)
    if cell.metric.kind == "failures":
        return measure_failures(cell, evidence, scope, policy)
    if cell.metric.kind == "score":
        return measure_scores(cell, evidence, scope, policy)
    return measure_latency(cell, evidence, scope, policy)


def pairs_to_decide(measured: Measurement, alpha_pass: float, alpha_fail: float) -> int | None:
    """Return the further pairs after which the cell decides, if they look like those seen.

    The statistics grow with √n, so that n·(z needed / z seen)² pairs are enough: towards a pass
    where the estimate is within the margin, else towards a fail. `None` where the estimate stands
    on the margin, where there is none, or beyond ten million pairs.
    """
    if measured.interval is None or measured.n == 0:
        return None
    towards_pass = measured.p_pass < 0.5
    p_seen = measured.p_pass if towards_pass else measured.interval.p_fail
    if not 0 < p_seen < 0.5 - 1e-9:
        return None
    needed = norm.isf(alpha_pass if towards_pass else alpha_fail) / norm.isf(p_seen)
    total = measured.n * float(needed) ** 2
    return max(1, int(np.ceil(round(total, 6))) - measured.n) if total <= _MOST_PAIRS else None


def _absent(cell: Cell, evidence: Evidence, scope: BoolColumn) -> Obstacle | None:
    """Say what is missing before any number can be made: cohorts, pairs, or a whole arm."""
    if cell.rule.scope == "cohort" and cell.cohort is None and not evidence.cohorts:
        words = "no request names a cohort; send `draftgate.cohort` with each"
        return Obstacle(Reason.MISSING, words)
    if not scope.any():
        where = "the rollout" if cell.cohort is None else f"cohort {cell.cohort}"
        words = f"{where} has no pairs"
        if planned := evidence.workload.get(cell.cohort or ""):
            words += f" of {planned:,} that the workload has"
        return Obstacle(Reason.MISSING, words, cell.min_n)
    for arm, side in (("baseline", evidence.baseline), ("candidate", evidence.candidate)):
        if not (side.present & scope).any():
            return Obstacle(Reason.MISSING, f"the {arm} never answered", cell.min_n)
    return None
