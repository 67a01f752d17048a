"""Cells of split traffic: each request was answered by one arm, so that nothing is paired."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from collector.contract import Reason
from evals.evidence import BoolColumn, Evidence, FloatColumn, Side
from evals.gate.cells import Cell, quantile_of
from evals.gate.clusters import clusters, count
from evals.gate.latency_cells import draws, unknown_times
from evals.gate.measured import Measurement, Obstacle, measured, too_few
from evals.gate.score_cells import MAX_UNSCORED_SHARE, nothing_at_stake
from evals.gate.sum_cells import arm_of, counted, prices_of, uncounted, without_price
from evals.policy import Policy
from evals.quality import used_in
from evals.stats import Insufficient, Interval, welch
from evals.stats.quantile_ratio import unpaired_quantile_ratio
from evals.stats.ratio_of_sums import unpaired_ratio_of_sums
from evals.stats.score_difference import unpaired_difference


class _Sample(NamedTuple):
    """One arm's values, what each weighs, and the independent draws that they are worth."""

    values: FloatColumn
    weights: FloatColumn
    draws: float


def measure_split(cell: Cell, evidence: Evidence, scope: BoolColumn, policy: Policy) -> Measurement:
    """Compare two groups of requests; the pool's candidates are weighted to the baseline's mix."""
    rows = [_rows(cell, evidence, side, scope) for side in (evidence.candidate, evidence.baseline)]
    n = int(min(known.sum() for known, _ in rows))
    prompts = min(clusters(evidence, known) for known, _ in rows)
    obstacle = (
        _obstacle(cell, rows, policy)
        or _nothing_at_stake(cell, evidence, rows[1][0])
        or too_few(cell, n, prompts)
    )
    if without_price(cell, policy) is not None:
        return Measurement(n=n, prompts=prompts, obstacle=obstacle)
    if n == 0:
        words = "an arm has no answer that can be measured"
        return Measurement(
            n=0, prompts=0, obstacle=obstacle or Obstacle(Reason.MISSING, words, cell.min_n)
        )
    found = measured(_limits(cell, evidence, rows, policy, weighted=True), n, prompts, obstacle)
    return replace(found, note=_reversal(cell, evidence, rows, policy, found))


_Rows = tuple[BoolColumn, BoolColumn]
"""The rows of one arm that are measured, and those that ought to be."""


def _rows(cell: Cell, evidence: Evidence, side: Side, scope: BoolColumn) -> _Rows:
    present = side.present & scope
    if cell.metric.kind == "failures":
        return present, present
    if cell.metric.kind == "score":
        expected = present & used_in(evidence, cell.rule.metric)
        return expected & ~np.isnan(_scores(cell, evidence, side)), expected
    if cell.metric.kind == "latency":
        seconds = side.latency_s(cell.rule.metric)
        owed = present & ~((side.output_tokens <= 1) & ~side.failed & (cell.rule.metric == "tpot"))
        usable = np.isfinite(seconds) if cell.rule.stat == "geomean_ratio" else ~np.isnan(seconds)
        return owed & usable, owed
    return present & counted(cell, side), present & side.answered


def _obstacle(cell: Cell, rows: list[_Rows], policy: Policy) -> Obstacle | None:
    known, expected = (int(sum(int(r[i].sum()) for r in rows)) for i in (0, 1))
    if cell.metric.kind in ("tokens", "cost"):
        return without_price(cell, policy) or uncounted(cell, known, expected)
    if cell.metric.kind == "latency":
        return unknown_times(0, expected - known, expected)
    if expected - known > MAX_UNSCORED_SHARE * expected:
        words = f"{expected - known} of {expected} answers have no score; run `draftgate evaluate`"
        return Obstacle(Reason.MISSING, words)
    return None


def _nothing_at_stake(cell: Cell, evidence: Evidence, rows: BoolColumn) -> Obstacle | None:
    if cell.metric.kind != "score" or not rows.any():
        return None
    return nothing_at_stake(cell, _scores(cell, evidence, evidence.baseline)[rows])


def _scores(cell: Cell, evidence: Evidence, side: Side) -> FloatColumn:
    scores = side.scores.get(cell.rule.metric, np.full(len(evidence), np.nan))
    return np.where(side.failed & used_in(evidence, cell.rule.metric), 0.0, scores)


def _values(cell: Cell, evidence: Evidence, side: Side) -> FloatColumn:
    kind, rule = cell.metric.kind, cell.rule
    if kind == "failures":
        return side.failed.astype(np.float64)
    if kind == "score":
        scores = _scores(cell, evidence, side)
        return (scores >= rule.pass_at).astype(np.float64) if rule.stat == "diff" else scores
    return side.latency_s(rule.metric) if kind == "latency" else side.output_tokens


def _limits(
    cell: Cell, evidence: Evidence, rows: list[_Rows], policy: Policy, *, weighted: bool
) -> Interval | Insufficient:
    rule, confidence = cell.rule, 1 - policy.alpha_pass
    sides = (evidence.candidate, evidence.baseline)
    if rule.stat == "mean_ratio":
        prices = prices_of(policy)
        per_hour = (prices.candidate_per_hour, prices.baseline_per_hour)
        arms = [
            arm_of(cell, evidence, side, known, price)
            for side, (known, _), price in zip(sides, rows, per_hour, strict=True)
        ]
        return unpaired_ratio_of_sums(
            *arms, margin=rule.margin, bound=rule.bound, confidence=confidence
        )
    mix = evidence.cohort_of[rows[1][0]] if weighted and cell.cohort is None else None
    samples = [
        _sample(cell, evidence, side, known, policy, mix if side is sides[0] else None)
        for side, (known, _) in zip(sides, rows, strict=True)
    ]
    return _compare(cell, samples[0], samples[1], confidence)


def _compare(
    cell: Cell, candidate: _Sample, baseline: _Sample, confidence: float
) -> Interval | Insufficient:
    rule, arms = cell.rule, (candidate, baseline)
    worth = (candidate.draws, baseline.draws)
    if rule.stat == "diff":
        shares = [(float(np.average(s.values, weights=s.weights)) * s.draws, s.draws) for s in arms]
        return unpaired_difference(
            shares[0], shares[1], margin=rule.margin, bound=rule.bound, confidence=confidence
        )
    if rule.stat in ("mean_diff", "geomean_ratio"):
        means = rule.stat == "mean_diff"
        compare = welch.mean_difference if means else welch.geometric_mean_ratio
        return compare(
            candidate.values,
            baseline.values,
            draws=worth,
            weights=(candidate.weights, baseline.weights),
            margin=rule.margin,
            bound=rule.bound,
            confidence=confidence,
        )
    return unpaired_quantile_ratio(
        _standardised(candidate),
        _standardised(baseline),
        q=quantile_of(rule.stat),
        draws=worth,
        margin=rule.margin,
        bound=rule.bound,
        confidence=confidence,
    )


def _sample(
    cell: Cell,
    evidence: Evidence,
    side: Side,
    known: BoolColumn,
    policy: Policy,
    mix: "np.ndarray[tuple[int], np.dtype[np.int64]] | None",
) -> _Sample:
    values, n = _values(cell, evidence, side)[known], count(evidence.prompts[known])
    worth = float(n)
    if cell.metric.kind == "latency" and cell.rule.stat != "geomean_ratio":
        q = quantile_of(cell.rule.stat)
        worth = draws(values, side.start_unix_ns[known], n, q, policy)
    weights = np.ones(len(values))
    if mix is not None:
        own = evidence.cohort_of[known]
        wanted, seen = (np.bincount(c + 1, minlength=len(evidence.cohorts) + 1) for c in (mix, own))
        weights = (wanted / len(mix) / np.maximum(seen, 1) * len(own))[own + 1]
    effective = float(weights.sum()) ** 2 / float((weights**2).sum())  # Kish
    return _Sample(values, weights, worth * effective / len(values))


def _standardised(sample: _Sample) -> FloatColumn:
    """Return as many values, none weighted, that have the weighted distribution's quantiles."""
    if (sample.weights == sample.weights[0]).all():
        return sample.values
    order = np.argsort(sample.values, kind="stable")
    reached = np.cumsum(sample.weights[order]) / sample.weights.sum()
    wanted = (np.arange(len(order)) + 0.5) / len(order)
    return np.asarray(sample.values[order][np.searchsorted(reached, wanted)])


def _reversal(
    cell: Cell, evidence: Evidence, rows: list[_Rows], policy: Policy, found: Measurement
) -> str | None:
    """Say where the raw pool points the other way than the pool at one mix of cohorts."""
    if cell.cohort is not None or found.interval is None or cell.rule.stat == "mean_ratio":
        return None
    raw = _limits(cell, evidence, rows, policy, weighted=False)
    if isinstance(raw, Insufficient) or raw.estimate is None or found.interval.estimate is None:
        return None
    null = 1.0 if cell.rule.stat.endswith("_ratio") else 0.0
    if (raw.estimate - null) * (found.interval.estimate - null) >= 0:
        return None
    return "the raw pools point the other way, because their mixes of cohorts differ (Simpson)"
