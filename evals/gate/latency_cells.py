"""Cells of latency metrics."""

import numpy as np

from collector.contract import Reason
from evals.evidence import BoolColumn, Counts, Evidence, FloatColumn
from evals.gate.cells import Cell, quantile_of
from evals.gate.clusters import by_prompt, clusters
from evals.gate.measured import Measurement, Obstacle, insufficient, too_few, unaccounted
from evals.policy import Policy
from evals.stats import Insufficient, Interval
from evals.stats.log_ratio import geometric_mean_ratio
from evals.stats.quantile_ratio import quantile_ratio

MAX_UNKNOWN_SHARE = 0.01
"""Share of pairs with unknown times above which a latency cell decides nothing."""


def measure_latency(
    cell: Cell, evidence: Evidence, scope: BoolColumn, policy: Policy
) -> Measurement:
    """Compare the latencies of the pairs whose times are known; failed answers are +inf."""
    latency = evidence.latency(cell.rule.metric)
    known, expected = scope & latency.known, int((scope & latency.expected).sum())
    flagged = int((scope & latency.flagged).sum())
    unmeasured = expected - int(known.sum()) - flagged
    failed = known & (np.isinf(latency.baseline) | np.isinf(latency.candidate))
    incomplete = int((scope & ~evidence.complete).sum())
    obstacle = _unknown_times(flagged, unmeasured, expected)
    if cell.rule.stat == "geomean_ratio":
        lost = int(failed.sum()) + incomplete
        obstacle = obstacle or unaccounted(lost, policy, "failed or incomplete pairs")
        known = known & ~failed
    else:
        obstacle = obstacle or unaccounted(incomplete, policy, "incomplete pairs")
    n, prompts = int(known.sum()), clusters(evidence, known)
    if n == 0:
        words = f"no pair has a {cell.metric.words} on both sides"
        obstacle = obstacle or Obstacle(Reason.MISSING, words, cell.min_n)
        return Measurement(n=0, prompts=0, obstacle=obstacle)
    obstacle = obstacle or too_few(cell, n, prompts)
    interval = _latency_limits(
        cell, latency.baseline[known], latency.candidate[known], evidence.prompts[known], policy
    )
    if isinstance(interval, Insufficient):
        return insufficient(interval, n, prompts, obstacle)
    return Measurement(
        n=n, prompts=prompts, interval=interval, p_pass=1 - interval.p_fail, obstacle=obstacle
    )


def _unknown_times(flagged: int, unmeasured: int, expected: int) -> Obstacle | None:
    if flagged > MAX_UNKNOWN_SHARE * expected:
        words = f"{flagged} of {expected} pairs have times that break the contract"
        return Obstacle(Reason.QUALITY, words)
    if unmeasured > MAX_UNKNOWN_SHARE * expected:
        return Obstacle(Reason.MISSING, f"{unmeasured} of {expected} pairs were not measured")
    return None


def _latency_limits(
    cell: Cell,
    baseline: FloatColumn,
    candidate: FloatColumn,
    prompts: Counts,
    policy: Policy,
) -> Interval | Insufficient:
    rule, confidence = cell.rule, 1 - policy.alpha_pass
    if rule.stat == "geomean_ratio":
        return geometric_mean_ratio(
            by_prompt(np.log(candidate / baseline), prompts),
            margin=rule.margin,
            bound=rule.bound,
            confidence=confidence,
        )
    return quantile_ratio(
        candidate,
        baseline,
        q=quantile_of(rule.stat),
        draws=(len(np.unique(prompts)),) * 2,
        margin=rule.margin,
        bound=rule.bound,
        confidence=confidence,
    )
