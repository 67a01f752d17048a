"""Cells of split traffic: each request was answered by one arm, so nothing is paired."""

import math
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from collector.contract import Reason, is_input_band
from evals.evidence.columns import BoolColumn, Counts, Evidence, FloatColumn, Side
from evals.gate.arrangement import launch_groups, of_arm
from evals.gate.cells import Cell, Margin, quantile_of
from evals.gate.clusters import clusters
from evals.gate.covariates import covariates, varying
from evals.gate.latency_cells import FASTEST_S, endless_baseline
from evals.gate.launch_limits import widened_by_arms_launches
from evals.gate.measured import (
    MAX_UNBOUNDED_SHARE,
    Measurement,
    Obstacle,
    at_worst,
    if_it_exists,
    measured,
    too_few,
    unknown_decide,
    with_p_pass,
)
from evals.gate.paired_limits import exceedances, log_quantile
from evals.gate.score_cells import lack, never_scored, nothing_at_stake
from evals.gate.sum_cells import arm_of, counted, filled, log_rate, prices_of, without_price
from evals.policy import Policy
from evals.policy.rules import QUANTILE_STATS
from evals.stats import Insufficient, Interval, dependence, stretches, welch
from evals.stats.adjustment import adjusted
from evals.stats.certain_harm import ArmMean, unpaired_mean_p, unpaired_share_p
from evals.stats.dependence import Effect
from evals.stats.quantile_ratio import unpaired_quantile_ratio
from evals.stats.ratio_of_sums import unpaired_ratio_of_sums
from evals.stats.score_difference import unpaired_difference


class _Sample(NamedTuple):
    """One arm's values, their weights, and the number of independent draws that they count as."""

    values: FloatColumn
    weights: FloatColumn
    draws: float
    effect: Effect


_CERTAIN = {"diff": unpaired_share_p, "mean_diff": unpaired_mean_p}
_Both = tuple[BoolColumn, BoolColumn]
"""Rows of the candidate, and of the baseline."""


def measure_split(cell: Cell, evidence: Evidence, scope: BoolColumn, policy: Policy) -> Measurement:
    """Compare two groups of requests; pooled candidates are weighted to the baseline's mix."""
    c, b = evidence.candidate, evidence.baseline
    expected = _expected(cell, evidence, c, scope), _expected(cell, evidence, b, scope)
    known = expected[0] & _known(cell, evidence, c), expected[1] & _known(cell, evidence, b)
    n = int(min(one.sum() for one in known))
    prompts = min(clusters(evidence, one) for one in known)
    unpriced = without_price(cell, evidence, policy)
    harm = _harm(cell, evidence, expected, policy)
    if n == 0 or unpriced is not None:
        stop = unpriced or Obstacle(Reason.MISSING, _nothing(cell, evidence, scope), cell.min_n)
        return Measurement(n=0, prompts=0, obstacle=stop, p_harm=harm)
    if not np.isin(evidence.cohort_of[known[0]], evidence.cohort_of[known[1]]).any():
        apart = Obstacle(Reason.MISMATCH, "the arms answered requests of no common cohort")
        return Measurement(n=0, prompts=0, obstacle=apart)
    found = _limits(cell, evidence, known, policy, weighted=True)
    robust = _robust(cell, evidence, expected, known, policy, found)
    no_comparison = _no_comparison(cell, evidence, known[1])
    obstacle = no_comparison or robust.obstacle or too_few(cell, n, prompts)
    result = measured(robust.limits, n, prompts, obstacle)
    note = _reversal(cell, evidence, known, policy, result)
    return replace(with_p_pass(result, robust.worst), note=note, p_harm=harm)


class _Robust(NamedTuple):
    """Limits that hold whatever the unknown values are."""

    limits: Interval | Insufficient
    obstacle: Obstacle | None
    worst: Interval | Insufficient
    """The limits with all unknown values at the candidate's worst."""


def _robust(
    cell: Cell,
    evidence: Evidence,
    expected: _Both,
    known: _Both,
    policy: Policy,
    found: Interval | Insufficient,
) -> _Robust:
    """Return limits that hold whatever the unknown values are."""
    lacking = sum(int((all_of & ~some).sum()) for all_of, some in zip(expected, known, strict=True))
    wanted = sum(int(rows.sum()) for rows in expected)
    if lacking == 0:
        return _Robust(found, None, found)
    worst, best = (
        _limits(cell, _at_extremes(cell, evidence, known, worst=bad), expected, policy,
                weighted=True, unknown=_extremes(cell, evidence, known, worst=bad))
        for bad in (True, False)
    )  # fmt: skip
    held = at_worst(found, worst, best, bound=cell.rule.bound)
    words = f"{lacking} of {wanted} answers {_lack(cell)}"
    share = lacking / wanted
    hidden = unknown_decide(cell, found, held, words)
    if cell.rule.stat in ("geomean_ratio", "mean_ratio") and share > MAX_UNBOUNDED_SHARE:
        hidden = Obstacle(Reason.MISSING, f"{words}, above {MAX_UNBOUNDED_SHARE:.0%} of them")
    return _Robust(held, hidden, worst)


def _lack(cell: Cell) -> str:
    if cell.metric.scored:
        return lack(cell)
    if cell.metric.kind == "failures":
        return "came from another route"
    if cell.metric.kind == "latency":
        return f"have no usable {cell.metric.words}"
    return "have no count of tokens or no usable time"


def _nothing(cell: Cell, evidence: Evidence, scope: BoolColumn) -> str:
    if cell.metric.scored:
        return never_scored(cell, evidence, scope)
    return "an arm has no answer that can be measured"


def _extremes(cell: Cell, evidence: Evidence, known: _Both, *, worst: bool) -> tuple[float, float]:
    """Return the values for unknown ones of candidate and baseline, at worst or at best."""
    kind = cell.metric.kind
    if cell.metric.scored:
        return (0.0, 1.0) if worst else (1.0, 0.0)
    if kind == "failures":
        return (1.0, 0.0) if worst else (0.0, 1.0)
    if kind == "latency" and cell.rule.stat != "geomean_ratio":
        return (math.inf, FASTEST_S) if worst else (FASTEST_S, math.inf)
    larger = worst == (cell.rule.bound == "max")
    sides = (evidence.candidate, evidence.baseline)
    c, b = (_values(cell, evidence, s)[rows] for s, rows in zip(sides, known, strict=True))
    c, b = c[np.isfinite(c)], b[np.isfinite(b)]
    return (c.max(), b.min()) if larger else (c.min(), b.max())


def _at_extremes(cell: Cell, evidence: Evidence, known: _Both, *, worst: bool) -> Evidence:
    """Return the evidence with the sums' unknown numbers set to the arms' observed extremes."""
    if cell.rule.stat != "mean_ratio":
        return evidence
    sides = filled(cell, (evidence.candidate, evidence.baseline), known, worst=worst)
    return replace(evidence, candidate=sides[0], baseline=sides[1])


def _expected(cell: Cell, evidence: Evidence, side: Side, scope: BoolColumn) -> BoolColumn:
    """Return which answers of an arm should be measured."""
    present = side.present & scope
    if cell.metric.kind == "failures":
        return present
    if cell.metric.scored:
        return present & evidence.applicability(cell.rule.metric).owed
    if cell.metric.kind == "latency":
        one_token = (side.output_tokens <= 1) & ~side.failed & (cell.rule.metric == "tpot")
        finite = side.failed & (cell.rule.stat == "geomean_ratio")
        return present & ~one_token & ~finite
    return present & side.answered


def _known(cell: Cell, evidence: Evidence, side: Side) -> BoolColumn:
    """Return which answers of an arm are measured."""
    if cell.metric.kind == "failures":
        return ~side.fallback
    if cell.metric.scored or cell.metric.kind == "latency":
        return ~np.isnan(_values(cell, evidence, side, shares=False))
    return counted(cell, side)


def _harm(cell: Cell, evidence: Evidence, expected: _Both, policy: Policy) -> float | None:
    """Return the p value of harm, with all unknown values in the candidate's favour."""
    compare = _CERTAIN.get(cell.rule.stat)
    if compare is None or not all(rows.any() for rows in expected):
        return None
    unknown = _extremes(cell, evidence, expected, worst=False)
    arms = []
    for side, rows, value in zip(
        (evidence.candidate, evidence.baseline), expected, unknown, strict=True
    ):
        values = _values(cell, evidence, side, unknown=value)[rows]
        harmed = values > 0 if cell.rule.bound == "max" else values <= 0
        draws = of_arm(evidence, side, rows, policy).draws(values, harmed)
        arms.append(ArmMean(float(values.mean()), draws))
    return compare(*arms, margin=cell.rule.margin, bound=cell.rule.bound)


def _no_comparison(cell: Cell, evidence: Evidence, rows: BoolColumn) -> Obstacle | None:
    """Return the obstacle that no candidate could be worse than this baseline, if so."""
    if cell.rule.stat in QUANTILE_STATS:
        return endless_baseline(cell, _values(cell, evidence, evidence.baseline)[rows])
    if not cell.metric.scored or not rows.any():
        return None
    return nothing_at_stake(cell, _scores(cell, evidence, evidence.baseline)[rows])


def _scores(cell: Cell, evidence: Evidence, side: Side) -> FloatColumn:
    scores = side.score(cell.rule.metric)
    owed = evidence.applicability(cell.rule.metric).owed
    return np.where(side.failed & owed, 0.0, scores)


def _values(
    cell: Cell,
    evidence: Evidence,
    side: Side,
    *,
    unknown: float = math.nan,
    shares: bool = True,
) -> FloatColumn:
    """Return one arm's values, with unknown ones set to `unknown`."""
    kind, rule = cell.metric.kind, cell.rule
    if kind == "failures":
        return np.where(side.fallback, unknown, side.failed.astype(np.float64))
    if cell.metric.scored:
        scores = _scores(cell, evidence, side)
        scores = np.where(np.isnan(scores), unknown, scores)
        as_share = shares and rule.stat == "diff"
        return (scores >= rule.pass_at).astype(np.float64) if as_share else scores
    if kind == "latency":
        seconds = side.latency_s(rule.metric)
        return np.where(np.isnan(seconds), unknown, seconds)
    return np.where(counted(cell, side), side.output_tokens, unknown)


def _limits(
    cell: Cell,
    evidence: Evidence,
    rows: _Both,
    policy: Policy,
    *,
    weighted: bool,
    unknown: tuple[float, float] = (math.nan, math.nan),
) -> Interval | Insufficient:
    rule, confidence = cell.rule, 1 - policy.alpha_pass
    sides = (evidence.candidate, evidence.baseline)
    if rule.stat == "mean_ratio":
        prices = prices_of(evidence, policy)
        per_hour = (prices.candidate_per_hour, prices.baseline_per_hour)
        arms = [
            arm_of(cell, side, known,
                   of_arm(evidence, side, known, policy, timed=cell.metric.timed).effect, price)
            for side, known, price in zip(sides, rows, per_hour, strict=True)
        ]  # fmt: skip
        sums = unpaired_ratio_of_sums(*arms, **cell.margin_at(confidence))
        logs = (partial(log_rate, arms[0]), partial(log_rate, arms[1]))
        return widened_by_arms_launches(sums, logs, _launches(cell, evidence, rows), cell, policy)
    several = cell.cohort is None or is_input_band(cell.cohort)
    mix = evidence.cohort_of[rows[1]] if weighted and several else None
    before, centre = _covariates(sides, rows)
    mixes = (mix, None)
    samples = [
        _sample(cell, evidence, sides[i], policy, _ArmRows(rows[i], before[i], centre, mixes[i]),
                unknown[i])
        for i in (0, 1)
    ]  # fmt: skip
    # Unadjusted: the hour, one of the covariates, would explain the differences of few launches.
    plain = [_values(cell, evidence, sides[i], unknown=unknown[i])[rows[i]] for i in (0, 1)]
    logs = (partial(_stat_of, cell, plain[0]), partial(_stat_of, cell, plain[1]))
    found = _compare(cell, samples[0], samples[1], confidence)
    return widened_by_arms_launches(found, logs, _launches(cell, evidence, rows), cell, policy)


def _launches(cell: Cell, evidence: Evidence, rows: _Both) -> tuple[Counts, Counts] | None:
    """Return the launch of each value of both arms, if limits are to hold over launches."""
    c, b = (launch_groups(evidence, one, timed=cell.metric.timed) for one in rows)
    return None if c is None or b is None else (c, b)


def _stat_of(cell: Cell, values: FloatColumn, rows: BoolColumn) -> float:
    """Return the cell's statistic over one arm's values in the mask; of a ratio its logarithm."""
    if cell.rule.stat == "diff":
        return float(values[rows].mean())
    if cell.rule.stat in QUANTILE_STATS:
        return log_quantile(values[rows], quantile_of(cell.rule.stat))
    return float(np.log(values[rows]).mean())


def _covariates(
    sides: tuple[Side, Side], rows: _Both
) -> tuple[tuple[FloatColumn, FloatColumn], FloatColumn]:
    """Return both arms' covariates that vary, and their mean over both."""
    candidate, baseline = (covariates(side, known) for side, known in zip(sides, rows, strict=True))
    columns = varying((candidate, baseline))
    centre = np.concatenate((candidate, baseline))[:, columns].mean(axis=0)
    return (candidate[:, columns], baseline[:, columns]), centre


class _ArmRows(NamedTuple):
    """Answers of one arm, their requests' covariates, and the mix to weight them to."""

    known: BoolColumn
    before: FloatColumn
    centre: FloatColumn
    mix: Counts | None


def _compare(
    cell: Cell, candidate: _Sample, baseline: _Sample, confidence: float
) -> Interval | Insufficient:
    arms = (candidate, baseline)
    fewest = dependence.fewest([arm.effect for arm in arms])
    found = _between(cell, arms, cell.margin_at(fewest.confidence(confidence)))
    return fewest.with_students_p(found)


def _between(cell: Cell, arms: tuple[_Sample, _Sample], against: Margin) -> Interval | Insufficient:
    candidate, baseline = arms
    worth = (candidate.draws, baseline.draws)
    if cell.rule.stat == "diff":
        means = [float(np.average(s.values, weights=s.weights)) for s in arms]
        shares = [
            (min(max(m, 0.0), 1.0) * s.draws, s.draws) for m, s in zip(means, arms, strict=True)
        ]
        return unpaired_difference(shares[0], shares[1], **against)
    if cell.rule.stat in ("mean_diff", "geomean_ratio"):
        scores = cell.rule.stat == "mean_diff"
        compare = welch.mean_difference if scores else welch.geometric_mean_ratio
        return compare(
            candidate.values,
            baseline.values,
            draws=worth,
            weights=(candidate.weights, baseline.weights),
            **against,
        )
    q = quantile_of(cell.rule.stat)
    found = unpaired_quantile_ratio(
        _standardised(candidate), _standardised(baseline), q=q, draws=worth, **against
    )
    return if_it_exists(found, q, min(len(candidate.values), len(baseline.values)))


def _sample(
    cell: Cell,
    evidence: Evidence,
    side: Side,
    policy: Policy,
    rows: _ArmRows,
    unknown: float,
) -> _Sample:
    known, mix, stat = rows.known, rows.mix, cell.rule.stat
    values = _values(cell, evidence, side, unknown=unknown)[known]
    arm, gain = of_arm(evidence, side, known, policy, timed=cell.metric.timed), 1.0
    if stat in QUANTILE_STATS:
        measure = exceedances(values, quantile_of(stat))
        effect = arm.effect(measure)
    else:
        measure = np.log(values) if stat == "geomean_ratio" else values
        better = adjusted(measure, rows.before, rows.centre)
        effect, values = arm.effect(better.values), better.values
        # A share's variance follows from the share, so the gain is counted as further draws.
        gain = better.gain if stat == "diff" else 1.0
        values = np.exp(values) if stat == "geomean_ratio" else values
    worth = len(values) / effect.ratio
    if stat != "geomean_ratio":
        longest, level = arm.stretch(measure), 1 - policy.alpha_pass
        worth = stretches.draws(arm.in_order(measure), effect, longest, level)
    worth *= gain
    weights = np.ones(len(values))
    if mix is not None:
        own = evidence.cohort_of[known]
        wanted, seen = (np.bincount(c + 1, minlength=len(evidence.cohorts) + 1) for c in (mix, own))
        weights = (wanted / len(mix) / np.maximum(seen, 1) * len(own))[own + 1]
    effective = float(weights.sum()) ** 2 / float((weights**2).sum())  # Kish
    return _Sample(values, weights, worth * effective / len(values), effect)


def _standardised(sample: _Sample) -> FloatColumn:
    """Return as many unweighted values that have the weighted distribution's quantiles."""
    if (sample.weights == sample.weights[0]).all():
        return sample.values
    order = np.argsort(sample.values, kind="stable")
    reached = np.cumsum(sample.weights[order]) / sample.weights.sum()
    wanted = (np.arange(len(order)) + 0.5) / len(order)
    return np.asarray(sample.values[order][np.searchsorted(reached, wanted)])


def _reversal(
    cell: Cell, evidence: Evidence, rows: _Both, policy: Policy, found: Measurement
) -> str | None:
    """Return a note if the raw pool and the pool at one mix of cohorts point opposite ways."""
    if cell.cohort is not None or found.interval is None or cell.rule.stat == "mean_ratio":
        return None
    raw = _limits(cell, evidence, rows, policy, weighted=False)
    if isinstance(raw, Insufficient) or raw.estimate is None or found.interval.estimate is None:
        return None
    null = 1.0 if cell.rule.stat.endswith("_ratio") else 0.0
    if (raw.estimate - null) * (found.interval.estimate - null) >= 0:
        return None
    return "the raw pools point the other way, because their mixes of cohorts differ (Simpson)"
