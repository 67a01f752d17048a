"""Cells of latency metrics."""

import numpy as np

from collector.contract import Reason
from evals.evidence import BoolColumn, Counts, Evidence, FloatColumn
from evals.gate.cells import Cell, quantile_of
from evals.gate.clusters import by_prompt, clusters, count
from evals.gate.measured import Measurement, Obstacle, measured, too_few, unaccounted
from evals.policy import Policy
from evals.stats import Insufficient, Interval
from evals.stats.design_effect import block_design_effect
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
    obstacle = unknown_times(flagged, unmeasured, expected)
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
    return measured(_latency_limits(cell, evidence, known, policy), n, prompts, obstacle)


def unknown_times(flagged: int, unmeasured: int, expected: int) -> Obstacle | None:
    """Refuse to judge by part of the times."""
    if flagged > MAX_UNKNOWN_SHARE * expected:
        words = f"{flagged} of {expected} pairs have times that break the contract"
        return Obstacle(Reason.QUALITY, words)
    if unmeasured > MAX_UNKNOWN_SHARE * expected:
        return Obstacle(Reason.MISSING, f"{unmeasured} of {expected} pairs were not measured")
    return None


def draws(
    values: FloatColumn, start_unix_ns: Counts, prompts: int, q: float, policy: Policy
) -> float:
    """Return the independent draws among one arm's values: prompts over the design effect.

    The effect is that of the policy's blocks, in order of start; 1 without blocks. Too few values
    for blocks of two leave it at 1: the cell's least n has then stopped it already.
    """
    if policy.sampling.block is None:
        return prompts
    exceeds = (values > np.quantile(values, q))[np.argsort(start_unix_ns, kind="stable")]
    blocks = policy.sampling.block
    effect = block_design_effect(exceeds, size=blocks.size, min_blocks=blocks.min_blocks)
    return prompts / (effect or 1.0)


def _latency_limits(
    cell: Cell, evidence: Evidence, known: BoolColumn, policy: Policy
) -> Interval | Insufficient:
    rule, confidence = cell.rule, 1 - policy.alpha_pass
    latency, prompts = evidence.latency(rule.metric), evidence.prompts[known]
    candidate, baseline = latency.candidate[known], latency.baseline[known]
    if rule.stat == "geomean_ratio":
        return geometric_mean_ratio(
            by_prompt(np.log(candidate / baseline), prompts),
            margin=rule.margin,
            bound=rule.bound,
            confidence=confidence,
        )
    q, n = quantile_of(rule.stat), count(prompts)
    return quantile_ratio(
        candidate,
        baseline,
        q=q,
        draws=(
            draws(candidate, evidence.candidate.start_unix_ns[known], n, q, policy),
            draws(baseline, evidence.baseline.start_unix_ns[known], n, q, policy),
        ),
        margin=rule.margin,
        bound=rule.bound,
        confidence=confidence,
    )
