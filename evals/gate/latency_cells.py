"""Cells of latency metrics."""

import math
from dataclasses import replace

import numpy as np

from collector.contract import Reason
from evals.evidence.columns import BoolColumn, Evidence, FloatColumn, Latency
from evals.gate.arrangement import of_arm, of_pairs
from evals.gate.cells import Cell, quantile_of
from evals.gate.clusters import clusters
from evals.gate.measured import (
    Measurement,
    Obstacle,
    at_worst,
    if_it_exists,
    measured,
    too_few,
    unaccounted,
    unbounded,
    unknown_decide,
    with_p_pass,
)
from evals.gate.paired_limits import geomean_limits, quantile_limits
from evals.policy import Policy
from evals.stats import Insufficient, Interval
from evals.stats.percentiles import ordered_percentile

FASTEST_S = 1e-9
"""The best case of an unknown time: a nanosecond."""


def measure_latency(
    cell: Cell, evidence: Evidence, scope: BoolColumn, policy: Policy
) -> Measurement:
    """Compare latencies; failed answers are +inf, unknown times the worst case of each decision."""
    if cell.rule.stat == "geomean_ratio":
        return _measure_mean(cell, evidence, scope, policy)
    latency = evidence.latency(cell.rule.metric)
    rows, known = scope & latency.expected, scope & latency.known
    n, prompts = int(known.sum()), clusters(evidence, known)
    if n == 0:
        return _never_measured(cell, evidence, scope)
    found = _latency_limits(cell, evidence, known, latency, policy)
    stop = endless_baseline(cell, latency.baseline[known]) or too_few(cell, n, prompts)
    if known.sum() == rows.sum():
        return measured(found, n, prompts, stop)
    slow, fast = (
        _filled(latency, c=math.inf, b=FASTEST_S),
        _filled(latency, c=FASTEST_S, b=math.inf),
    )
    worst = _latency_limits(cell, evidence, rows, slow, policy)
    best = _latency_limits(cell, evidence, rows, fast, policy)
    held = at_worst(found, worst, best, bound=cell.rule.bound)
    hidden = unknown_decide(cell, found, held, unknown_words(cell, evidence, rows & ~known))
    return _at_worst_case(measured(held, n, prompts, hidden or stop), worst, hidden,
                   flagged=bool((latency.flagged & rows).any()))  # fmt: skip


def endless_baseline(cell: Cell, baseline_s: FloatColumn) -> Obstacle | None:
    """Return the obstacle that the baseline's quantile is infinite by failures, if it is."""
    q = quantile_of(cell.rule.stat)
    if not math.isinf(ordered_percentile(np.sort(baseline_s), q)):
        return None
    failed = int(np.isinf(baseline_s).sum())
    words = (
        f"{failed:,} of the baseline's {len(baseline_s):,} answers failed, so that its "
        f"{cell.rule.stat.removesuffix('_ratio')} has no end and no candidate could be slower"
    )
    return Obstacle(Reason.MISSING, words, bars_fail=False)


def _measure_mean(cell: Cell, evidence: Evidence, scope: BoolColumn, policy: Policy) -> Measurement:
    """Compare geometric means over the pairs that both arms answered."""
    latency = evidence.latency(cell.rule.metric)
    answered = evidence.baseline.answered & evidence.candidate.answered
    rows = scope & latency.expected & answered
    known = rows & latency.known
    n, prompts = int(known.sum()), clusters(evidence, known)
    if n == 0:
        return _never_measured(cell, evidence, scope)
    lost = int((scope & latency.expected & ~answered).sum())
    obstacle = unaccounted(lost, policy)
    found = _latency_limits(cell, evidence, known, latency, policy)
    if known.sum() == rows.sum():
        return measured(found, n, prompts, obstacle or too_few(cell, n, prompts))
    c, b = latency.candidate[known], latency.baseline[known]
    worst, best = (
        _latency_limits(cell, evidence, rows, _filled(latency, c=x, b=y), policy)
        for x, y in ((c.max(), b.min()), (c.min(), b.max()))
    )
    held = at_worst(found, worst, best, bound=cell.rule.bound)
    words = unknown_words(cell, evidence, rows & ~known)
    hidden = unbounded(words, rows, known) or unknown_decide(cell, found, held, words)
    stop = obstacle or hidden or too_few(cell, n, prompts)
    return _at_worst_case(
        measured(held, n, prompts, stop),
        worst,
        hidden,
        flagged=bool((latency.flagged & rows).any()),
    )


def unknown_words(cell: Cell, evidence: Evidence, unknown: BoolColumn) -> str:
    """Return how many values are unknown, by reason."""
    sides = (evidence.baseline, evidence.candidate)
    complete = evidence.complete
    flagged = sides[0].times_flagged | sides[1].times_flagged
    other = sides[0].fallback | sides[1].fallback
    reasons = (
        ("never arrived", ~complete),
        ("were answered by another route", complete & other),
        ("have times that break the contract", complete & ~other & flagged),
        (f"have no {cell.metric.words}", complete & ~other & ~flagged),
    )
    counts = [(int((unknown & rows).sum()), words) for words, rows in reasons]
    return ", ".join(f"{n} {cell.unit} {words}" for n, words in counts if n)


def _at_worst_case(
    found: Measurement,
    worst: Interval | Insufficient,
    hidden: Obstacle | None,
    *,
    flagged: bool,
) -> Measurement:
    """Return the measurement with the p value of a pass at worst, and the obstacle to a pass."""
    if hidden is not None and found.obstacle is hidden and flagged:
        found = replace(found, obstacle=replace(hidden, reason=Reason.QUALITY))
    return with_p_pass(found, worst)


def _never_measured(cell: Cell, evidence: Evidence, scope: BoolColumn) -> Measurement:
    latency = evidence.latency(cell.rule.metric)
    flagged, owed = (int((scope & rows).sum()) for rows in (latency.flagged, latency.expected))
    obstacle = Obstacle(
        Reason.MISSING, f"no pair has a {cell.metric.words} on both sides", cell.min_n
    )
    if flagged:
        words = f"{flagged} of {owed} pairs have times that break the contract"
        obstacle = Obstacle(Reason.QUALITY, words)
    return Measurement(n=0, prompts=0, obstacle=obstacle)


def _filled(latency: Latency, *, c: float, b: float) -> Latency:
    """Return the times with unknown ones set to `c` (candidate) and `b` (baseline)."""
    candidate = np.where(np.isnan(latency.candidate), c, latency.candidate)
    baseline = np.where(np.isnan(latency.baseline), b, latency.baseline)
    return latency._replace(candidate=candidate, baseline=baseline)


def _latency_limits(
    cell: Cell, evidence: Evidence, known: BoolColumn, latency: Latency, policy: Policy
) -> Interval | Insufficient:
    candidate, baseline = latency.candidate[known], latency.baseline[known]
    if cell.rule.stat == "geomean_ratio":
        pairs = of_pairs(evidence, known, policy, timed=True)
        return geomean_limits(np.log(candidate / baseline), pairs, cell, policy)
    arms = (
        of_arm(evidence, evidence.candidate, known, policy, timed=True),
        of_arm(evidence, evidence.baseline, known, policy, timed=True),
    )
    found = quantile_limits(candidate, baseline, arms, cell, policy)
    return if_it_exists(found, quantile_of(cell.rule.stat), len(candidate))
