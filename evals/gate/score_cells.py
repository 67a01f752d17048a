"""Cells of scored metrics, and of failed or missing answers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from collector.contract import Reason
from evals.evidence.columns import BoolColumn, Evidence, FloatColumn, Scores, Side
from evals.gate.arrangement import Arrangement, of_pairs
from evals.gate.cells import Cell
from evals.gate.clusters import clusters
from evals.gate.measured import (
    Measurement,
    Obstacle,
    at_worst,
    measured,
    too_few,
    unknown_decide,
    with_p_pass,
)
from evals.gate.paired_limits import score_difference, share_difference
from evals.policy import Policy
from evals.stats import Insufficient, Interval
from evals.stats.certain_harm import mean_difference_p, paired_share_p


def measure_failures(
    cell: Cell, evidence: Evidence, scope: BoolColumn, policy: Policy
) -> Measurement:
    """Compare the shares of answers that failed or never arrived.

    If another route answered an arm's request, it is unknown whether the arm would have failed.
    """
    sides = (evidence.baseline, evidence.candidate)
    unknown = [side.fallback[scope] for side in sides]
    failed = [~side.answered[scope] for side in sides]
    n, drawn, pairs = int(scope.sum()), clusters(evidence, scope), of_pairs(evidence, scope, policy)

    def limits(*of: bool) -> Interval | Insufficient:
        baseline, candidate = (
            np.where(hidden, value, seen)
            for hidden, value, seen in zip(unknown, of, failed, strict=True)
        )
        return share_difference(candidate, baseline, pairs, cell, policy)

    neither = (False, False)
    known = held = worst = limits(*neither)
    hidden = int((unknown[0] | unknown[1]).sum())
    obstacle = too_few(cell, n, drawn)
    if hidden:
        worst, best = limits(*(False, True)), limits(*(True, False))
        held = at_worst(known, worst, best, bound=cell.rule.bound)
        words = f"{hidden} of {n} requests were answered by another route"
        obstacle = unknown_decide(cell, known, held, words) or obstacle
    harm = _share_harm(cell, failed[1] & ~unknown[1], failed[0] | unknown[0], pairs)
    found = with_p_pass(measured(held, n, drawn, obstacle), worst)
    return replace(found, p_harm=harm, note=empty_words(sides, scope))


def empty_words(sides: Sequence[Side], scope: BoolColumn) -> str | None:
    """Return how many answers of baseline and candidate have no token; `None` if none."""
    counts = [int((side.empty & scope).sum()) for side in sides]
    if not any(counts):
        return None
    return f"{counts[1]:,} of the candidate's answers and {counts[0]:,} of the baseline's are empty"


def measure_scores(
    cell: Cell, evidence: Evidence, scope: BoolColumn, policy: Policy
) -> Measurement:
    """Compare scores; missing scores take the worst case for each decision."""
    scores = evidence.scores(cell.rule.metric)
    rows, both = scope & scores.applicable, scope & scores.both
    n, prompts = int(both.sum()), clusters(evidence, both)
    if n == 0:
        stop = Obstacle(Reason.MISSING, never_scored(cell, evidence, scope), cell.min_n)
        harm = _harm(cell, evidence, rows, policy)
        return Measurement(n=0, prompts=0, obstacle=stop, p_harm=harm)

    def limits(rows: BoolColumn, unknown: tuple[float, float]) -> Interval | Insufficient:
        b, c = filled(scores, unknown)
        pairs = of_pairs(evidence, rows, policy, timed=cell.metric.timed)
        return _score_limits(cell, b[rows], c[rows], pairs, policy)

    known = worst = best = limits(both, (0, 0))
    if n < int(rows.sum()):
        worst, best = limits(rows, (1, 0)), limits(rows, (0, 1))
    held = at_worst(known, worst, best, bound=cell.rule.bound)
    words = unscored_words(cell, evidence, rows & ~both, int(rows.sum()))
    obstacle = (
        nothing_at_stake(cell, scores.baseline[both])
        or unknown_decide(cell, known, held, words)
        or too_few(cell, n, prompts)
    )
    found = with_p_pass(measured(held, n, prompts, obstacle), worst)
    return replace(found, p_harm=_harm(cell, evidence, rows, policy))


def filled(scores: Scores, unknown: tuple[float, float]) -> tuple[FloatColumn, FloatColumn]:
    """Return both sides' scores, with the unknown ones set to these values."""
    sides = (scores.baseline, scores.candidate)
    b, c = (np.where(np.isnan(s), value, s) for s, value in zip(sides, unknown, strict=True))
    return b, c


def never_scored(cell: Cell, evidence: Evidence, scope: BoolColumn) -> str:
    """Return why a cell has no score at all."""
    found = evidence.applicability(cell.rule.metric)
    why = _reasons(cell, evidence, scope)
    if why is None and bool((found.unsure & scope).any()):
        return (
            f"no pair has a score, and whether {cell.metric.words} applies is not recorded; run "
            "`draftgate evaluate`, or list the rule's cohorts if it does not"
        )
    if cell.metric.kind == "goodput":
        return "no pair has the times that `goodput` bounds"
    words = "no pair has a score on both sides"
    return f"{words}: {why}" if why else f"{words}; run `draftgate evaluate` first"


def unscored_words(cell: Cell, evidence: Evidence, without: BoolColumn, owed: int) -> str:
    """Return how many pairs lack a score, and why."""
    why = _reasons(cell, evidence, without)
    words = f"{int(without.sum())} of {owed} pairs {lack(cell)}"
    return f"{words} ({why})" if why else words


def lack(cell: Cell) -> str:
    """Return what values that are unknown lack."""
    timed = cell.metric.kind == "goodput"
    return "have no usable time for a bound" if timed else "lack a score that they are owed"


def _reasons(cell: Cell, evidence: Evidence, rows: BoolColumn) -> str | None:
    """Return the reason that evaluators gave most often for giving no score."""
    found = Counter[str]()
    for side in (evidence.baseline, evidence.candidate):
        reasons = side.recorded.get(f"unscored_{cell.rule.metric}")
        if reasons is not None:
            found.update(reason for reason in reasons[rows] if reason is not None)
    return found.most_common(1)[0][0] if found else None


def _harm(cell: Cell, evidence: Evidence, rows: BoolColumn, policy: Policy) -> float | None:
    """Return the p value of harm, with all unknown scores in the candidate's favour."""
    baseline, candidate = filled(evidence.scores(cell.rule.metric), (0, 1))
    b, c = baseline[rows], candidate[rows]
    if len(b) == 0:
        return None
    pairs = of_pairs(evidence, rows, policy)
    if cell.rule.stat == "diff":
        return _share_harm(cell, c >= cell.rule.pass_at, b >= cell.rule.pass_at, pairs)
    draws = pairs.draws(c - b, c < b)
    return mean_difference_p(c - b, draws, margin=cell.rule.margin, bound=cell.rule.bound)


def _share_harm(
    cell: Cell, candidate: BoolColumn, baseline: BoolColumn, pairs: Arrangement
) -> float:
    margin, bound = cell.rule.margin, cell.rule.bound
    difference = float(candidate.mean() - baseline.mean())
    if (difference <= margin) if bound == "max" else (difference >= margin):
        return 1.0  # exact ones take their time
    harmed = candidate if bound == "max" else ~candidate
    draws = pairs.draws(candidate.astype(np.float64) - baseline, harmed)
    return paired_share_p(candidate, baseline, draws, margin=margin, bound=bound)


def nothing_at_stake(cell: Cell, baseline: FloatColumn) -> Obstacle | None:
    """Return the obstacle that even a candidate with all scores 0 would be within the margin.

    A baseline that never passes has nothing to lose: a broken reference, evaluator or `pass_at`
    looks like that, and would pass any candidate.
    """
    shares = cell.rule.stat == "diff"
    values = (baseline >= cell.rule.pass_at) if shares else baseline
    if float(values.mean()) > abs(cell.rule.margin):
        return None
    seen = (
        f"passes in {int(values.sum())} of {len(values)} {cell.unit}"
        if shares
        else f"has a mean score of {float(values.mean()):.3f}"
    )
    mend = "mend references, evaluator or `pass_at`"
    if cell.metric.kind == "goodput":
        mend = "widen the bounds of `goodput`, lower the load"
    words = (
        f"the baseline {seen}, so that a candidate without any success would be within the margin; "
        f"{mend}, or narrow the margin"
    )
    return Obstacle(Reason.MISSING, words)


def _score_limits(
    cell: Cell,
    baseline: FloatColumn,
    candidate: FloatColumn,
    pairs: Arrangement,
    policy: Policy,
) -> Interval | Insufficient:
    if cell.rule.stat == "diff":
        pass_at = cell.rule.pass_at
        return share_difference(candidate >= pass_at, baseline >= pass_at, pairs, cell, policy)
    return score_difference(candidate - baseline, pairs, cell, policy)
