"""Bounded differences: e-processes over pairs, a confidence sequence over split traffic."""

from dataclasses import replace

import numpy as np

from collector.contract import EffectSums, EProcess, WatchCell
from evals.evidence.columns import BoolColumn, Counts, Evidence, FloatColumn, Side
from evals.evidence.goodput import within_bounds
from evals.policy import Policy
from evals.policy.rules import METRICS
from evals.stats import Insufficient, Interval
from evals.stats.bets import Bets
from evals.stats.confidence_sequence import Effects, Traffic, running_mean
from evals.watch.plan import EXCEEDANCE, live
from evals.watch.window import Losses, Window

_NO_COHORT = ""


def differences(
    cell: WatchCell, window: Window, counts: BoolColumn, threshold_s: float | None, policy: Policy
) -> Losses:
    """Return candidate − baseline for the cell's pairs that newly count."""
    evidence = window.evidence
    rows = np.flatnonzero(counts & evidence.scope(cell.cohort))
    sides = (evidence.baseline, evidence.candidate)
    baseline, candidate = (outcome(cell, s, threshold_s, policy)[rows] for s in sides)
    known = ~(np.isnan(baseline) & np.isnan(candidate))
    rows, baseline, candidate = rows[known], baseline[known], candidate[known]
    return Losses(
        rows,
        np.nan_to_num(candidate, nan=0.0) - np.nan_to_num(baseline, nan=1.0),
        np.nan_to_num(candidate, nan=1.0) - np.nan_to_num(baseline, nan=0.0),
        np.nan_to_num(baseline, nan=0.0),
    )


def outcome(cell: WatchCell, side: Side, threshold_s: float | None, policy: Policy) -> FloatColumn:
    """Return the cell's outcome of each answer, in [0, 1]; NaN if unknown."""
    if cell.metric == EXCEEDANCE:
        rollback = live(policy).rollback
        if rollback is None or threshold_s is None:
            return np.full(len(side.present), np.nan)
        seconds = side.latency_s(rollback.latency)
        return np.where(np.isnan(seconds), np.nan, (seconds > threshold_s).astype(np.float64))
    if METRICS[cell.metric].kind == "failures":
        own = side.present & ~side.fallback
        return np.where(own, side.failed.astype(np.float64), np.nan)
    if policy.goodput is not None and METRICS[cell.metric].kind == "goodput":
        return within_bounds(side, policy.goodput)
    scores = np.where(side.failed, 0.0, side.score(cell.metric))
    if cell.stat == "diff":
        return np.where(np.isnan(scores), np.nan, (scores >= cell.pass_at).astype(np.float64))
    return scores


def nothing_at_stake(cell: WatchCell) -> bool:
    """Return whether even a candidate with all outcomes at worst would be within the margin.

    As in the gate: a baseline that never passes has nothing to lose.
    """
    if cell.metric == EXCEEDANCE or not METRICS[cell.metric].scored:
        return False
    if cell.split is None:
        answers, worth = cell.n, cell.baseline_sum or 0.0
    else:
        answers = sum(counts[0] for counts in cell.split.counts.values())
        worth = sum(sums[0] for sums in cell.split.sums.values())
    return answers > 0 and worth / answers <= abs(cell.margin)


def after_pairs(cell: WatchCell, found: Losses, alpha_pass: float, stretch: float) -> WatchCell:
    """Return the cell after more pairs; their order within a stretch does not matter."""
    if len(found.rows) == 0 or cell.passing is None or cell.failing is None:
        return cell
    # Worse is more for `max`, less for `min`; each decision assumes its own worst case.
    worst, best = (
        (found.highest, found.lowest) if cell.bound == "max" else (-found.lowest, -found.highest)
    )
    middle = (found.lowest + found.highest) / 2
    n, mean, squares = _merged(cell, middle)
    limits = running_mean(
        n,
        mean,
        squares,
        stretch=stretch,
        margin=cell.margin,
        confidence=1 - alpha_pass,
        method=cell.method,
    )
    failing = _after(cell.failing, best, stretch)
    return replace(
        _limited(cell, limits),
        n=n,
        mean=mean,
        squares=squares,
        baseline_sum=(cell.baseline_sum or 0.0) + float(found.baseline.sum()),
        estimate=mean,
        passing=_after(cell.passing, -worst, stretch),
        failing=failing,
        p_fail=min(1.0, float(np.exp(-failing.highest_log_e))),
    )


def log_e_at_worst(process: EProcess, lost: int, stretch: float) -> float:
    """Return log E of a pass after `lost` more pairs in which the candidate lost everything."""
    bets = Bets(process.limit, process.log_wealth, process.n)
    return bets.after(np.full(lost, -1.0)).log_e_in_stretches(stretch)


def after_requests(
    cell: WatchCell,
    window: Window,
    counts: BoolColumn,
    values: FloatColumn,
    stretch: float,
    policy: Policy,
) -> WatchCell:
    """Return the cell after more requests of split traffic, each answered by one arm."""
    evidence = window.evidence
    rows = np.flatnonzero(counts & evidence.scope(cell.cohort) & ~np.isnan(values))
    if len(rows) == 0 or cell.split is None:
        return cell
    rows = rows[np.argsort(window.answered_at[rows], kind="stable")]
    names = sorted({*cell.split.counts, *(_cohort(evidence, int(row)) for row in rows)})
    number = {name: i for i, name in enumerate(names)}
    traffic = Traffic(
        outcome=values[rows],
        to_candidate=evidence.candidate.present[rows],
        stratum=np.array([number[_cohort(evidence, int(row))] for row in rows], dtype=np.int64),
        split=policy.sampling.candidate_share,
    )
    effects = _restored(cell.split, names).after(traffic)
    limits = _oriented(cell, effects, stretch, policy)
    p = limits.p_fail if isinstance(limits, Interval) else 1.0
    return replace(
        _limited(cell, limits),
        n=effects.n,
        mean=effects.mean,
        squares=effects.squares,
        estimate=effects.mean,
        p_fail=min(p, 1.0 if cell.p_fail is None else cell.p_fail),
        split=_stored(effects, names),
    )


def _cohort(evidence: Evidence, row: int) -> str:
    index = int(evidence.cohort_of[row])
    return _NO_COHORT if index < 0 else evidence.cohorts[index]


def _oriented(
    cell: WatchCell, effects: Effects, stretch: float, policy: Policy
) -> Interval | Insufficient:
    """Return limits of candidate − baseline, with the p value on the side of the margin."""
    confidence = 1 - policy.alpha_pass
    if cell.bound == "max":
        return effects.limits(stretch=stretch, margin=cell.margin, confidence=confidence)
    turned = replace(effects, mean=-effects.mean).limits(
        stretch=stretch, margin=-cell.margin, confidence=confidence
    )
    if isinstance(turned, Insufficient) or turned.upper is None or turned.lower is None:
        return turned
    return replace(turned, estimate=effects.mean, lower=-turned.upper, upper=-turned.lower)


def _limited(cell: WatchCell, limits: Interval | Insufficient) -> WatchCell:
    if isinstance(limits, Insufficient):
        return replace(cell, lower=None, upper=None)
    return replace(cell, lower=limits.lower, upper=limits.upper)


def _merged(cell: WatchCell, added: FloatColumn) -> tuple[int, float, float]:
    """Return count, mean and squares with more differences."""
    n, mean = cell.n + len(added), float(added.mean())
    apart = mean - cell.mean
    squares = cell.squares + float(((added - mean) ** 2).sum())
    squares += apart**2 * cell.n * len(added) / n
    return n, cell.mean + apart * len(added) / n, squares


def _after(process: EProcess, differences: FloatColumn, stretch: float) -> EProcess:
    bets = Bets(process.limit, process.log_wealth, process.n).after(differences)
    log_e = bets.log_e_in_stretches(stretch)
    return EProcess(
        limit=process.limit,
        n=bets.n,
        log_wealth=bets.log_wealth,
        log_e=log_e,
        highest_log_e=max(process.highest_log_e, log_e),
    )


def _restored(sums: EffectSums, names: list[str]) -> Effects:
    zero = (0, 0)
    counts: Counts = np.array([sums.counts.get(name, zero) for name in names])
    totals = np.array([sums.sums.get(name, zero) for name in names], dtype=np.float64)
    return Effects(sums.n, sums.mean, sums.squares, counts.astype(np.float64), totals)


def _stored(effects: Effects, names: list[str]) -> EffectSums:
    return EffectSums(
        n=effects.n,
        mean=effects.mean,
        squares=effects.squares,
        counts={name: tuple(int(x) for x in effects.counts[i]) for i, name in enumerate(names)},
        sums={name: tuple(float(x) for x in effects.sums[i]) for i, name in enumerate(names)},
    )
