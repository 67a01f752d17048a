"""Cells of the prefix cache: the share of input tokens that an arm read from it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from collector.contract import Reason
from collector.nouns import counted
from evals.evidence.columns import BoolColumn, Evidence, FloatColumn, Side
from evals.gate.arrangement import of_arm, of_pairs
from evals.gate.cells import Cell
from evals.gate.clusters import clusters
from evals.gate.measured import (
    Measurement,
    Obstacle,
    at_worst,
    measured,
    too_few,
    unaccounted,
    unbounded,
    unknown_decide,
)
from evals.policy import Policy
from evals.stats import Insufficient, Interval
from evals.stats.rate_difference import Rate, rate_difference

_Rows = tuple[BoolColumn, BoolColumn]
"""The answers of candidate and baseline."""


def measure_cache(cell: Cell, evidence: Evidence, scope: BoolColumn, policy: Policy) -> Measurement:
    """Compare the arms' cached shares of input tokens; a pair counts if both sides have counts."""
    sides = (evidence.candidate, evidence.baseline)
    wanted = _in_pairs([scope & side.answered & ~side.fallback for side in sides], policy)
    known = _in_pairs(
        [rows & has_counts(side) for rows, side in zip(wanted, sides, strict=True)], policy
    )
    n = min(int(rows.sum()) for rows in known)
    prompts = min(clusters(evidence, rows) for rows in known)
    if n == 0:
        return Measurement(n=0, prompts=0, obstacle=_uncounted(wanted))
    arms = _rate(sides[0], known[0]), _rate(sides[1], known[1])
    found = held = _limits(cell, evidence, known, arms, policy)
    hidden = None
    if unknown := max(int((a & ~k).sum()) for a, k in zip(wanted, known, strict=True)):
        worst, best = (
            _limits(cell, evidence, wanted, _filled(sides, wanted, known, worst=bad), policy)
            for bad in (True, False)
        )
        held = at_worst(found, worst, best, bound=cell.rule.bound)
        words = f"no count of cached input tokens in {counted(unknown, 'answer')}"
        hidden = unbounded(words, wanted[0], known[0]) or unbounded(words, wanted[1], known[1])
        hidden = hidden or unknown_decide(cell, found, held, words)
    lost = int((scope & ~wanted[0]).sum()) if policy.paired else 0
    obstacle = unaccounted(lost, policy)
    result = measured(held, n, prompts, obstacle or hidden or too_few(cell, n, prompts))
    note = f"{arms[1].value:.1%} of the baseline's, {arms[0].value:.1%} of the candidate's"
    return result if result.interval is None else replace(result, note=note)


def _in_pairs(rows: Sequence[BoolColumn], policy: Policy) -> _Rows:
    """Return the answers of each arm; of pairs, those that count on both sides."""
    candidate, baseline = rows
    both = candidate & baseline
    return (both, both) if policy.paired else (candidate, baseline)


def has_counts(side: Side) -> BoolColumn:
    """Return which answers have counts of input tokens and of those that were cached."""
    cached, read = side.numbers("cached_input_tokens"), side.numbers("input_tokens")
    return np.isfinite(cached) & (read > 0) & (cached <= read)


def cached_share(side: Side) -> FloatColumn:
    """Return each answer's cached share of its input tokens; NaN without counts."""
    cached, read = side.numbers("cached_input_tokens"), side.numbers("input_tokens")
    known = has_counts(side) & side.answered & ~side.fallback
    return np.where(known, cached / np.where(read > 0, read, 1.0), np.nan)


def _uncounted(answered: _Rows) -> Obstacle:
    if not all(rows.any() for rows in answered):
        return Obstacle(Reason.MISSING, "an arm answered nothing")
    words = (
        "no answer, or of one arm none, has a count of cached input tokens; llama.cpp sends it, "
        "and vLLM with --enable-prompt-tokens-details"
    )
    return Obstacle(Reason.MISSING, words)


def _rate(side: Side, rows: BoolColumn) -> Rate:
    return Rate(side.numbers("cached_input_tokens")[rows], side.numbers("input_tokens")[rows])


def _filled(
    sides: tuple[Side, Side], wanted: _Rows, known: _Rows, *, worst: bool
) -> tuple[Rate, Rate]:
    """Return the rates with unknown answers, of the arm's mean length, at 0 or all cached."""
    found = []
    for side, rows, has, none in zip(sides, wanted, known, (worst, not worst), strict=True):
        cached, read = side.numbers("cached_input_tokens"), side.numbers("input_tokens")
        totals = np.where(read > 0, read, read[has].mean())
        counts = np.where(has, cached, 0.0 if none else totals)
        found.append(Rate(counts[rows], totals[rows]))
    return found[0], found[1]


def _limits(
    cell: Cell, evidence: Evidence, rows: _Rows, arms: tuple[Rate, Rate], policy: Policy
) -> Interval | Insufficient:
    candidate, baseline = arms
    if policy.paired:
        pulls = candidate.pulls - baseline.pulls
        parts = [(pulls, of_pairs(evidence, rows[0], policy).effect(pulls))]
    else:
        sides = (evidence.candidate, evidence.baseline)
        parts = [
            (arm.pulls, of_arm(evidence, side, chosen, policy).effect(arm.pulls))
            for arm, side, chosen in zip(arms, sides, rows, strict=True)
        ]
    return rate_difference(
        candidate.value - baseline.value, parts, **cell.margin_at(1 - policy.alpha_pass)
    )
