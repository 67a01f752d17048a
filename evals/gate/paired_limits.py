"""Limits of paired differences and ratios, for pairs that depend on each other."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evals.evidence.columns import BoolColumn, FloatColumn
from evals.gate.arrangement import Arrangement
from evals.gate.cells import Cell, quantile_of
from evals.gate.launch_limits import widened_by_launches
from evals.policy import Policy
from evals.stats import Insufficient, Interval, dependence, stretches
from evals.stats.dependence import Effect
from evals.stats.hall import mean_difference
from evals.stats.log_ratio import geometric_mean_ratio
from evals.stats.percentiles import ordered_percentile
from evals.stats.quantile_ratio import quantile_ratio
from evals.stats.tango import paired_difference

MIN_STRETCHES = 4
"""With fewer stretches of slow requests, a quantile's limits cannot prove a pass."""


def share_difference(
    candidate: BoolColumn, baseline: BoolColumn, pairs: Arrangement, cell: Cell, policy: Policy
) -> Interval | Insufficient:
    """Compare shares with Tango's limits, with counts scaled down by the design effect."""
    differences = candidate.astype(np.float64) - baseline
    effect = pairs.effect(differences)
    gained, lost = (float(x.sum()) for x in (candidate & ~baseline, baseline & ~candidate))

    def limits(confidence: float) -> Interval | Insufficient:
        found = paired_difference(
            gained / effect.ratio,
            lost / effect.ratio,
            len(candidate) / effect.ratio,
            **cell.margin_at(effect.confidence(confidence)),
        )
        return effect.with_students_p(found)

    found = _stretched(limits, differences, pairs, cell, policy)
    return widened_by_launches(
        found, lambda rows: float(differences[rows].mean()), pairs.launches, cell, policy
    )


def score_difference(
    differences: FloatColumn, pairs: Arrangement, cell: Cell, policy: Policy
) -> Interval | Insufficient:
    """Compare mean scores with Hall's limits."""
    effect = pairs.effect(differences)

    def limits(confidence: float) -> Interval | Insufficient:
        return mean_difference(differences, effect=effect, **cell.margin_at(confidence))

    return _stretched(limits, differences, pairs, cell, policy)


def geomean_limits(
    log_ratios: FloatColumn, pairs: Arrangement, cell: Cell, policy: Policy
) -> Interval | Insufficient:
    """Compare geometric means."""
    found = geometric_mean_ratio(
        log_ratios, effect=pairs.effect(log_ratios), **cell.margin_at(1 - policy.alpha_pass)
    )
    return widened_by_launches(
        found, lambda rows: float(log_ratios[rows].mean()), pairs.launches, cell, policy
    )


def quantile_limits(
    candidate: FloatColumn,
    baseline: FloatColumn,
    arms: tuple[Arrangement, Arrangement],
    cell: Cell,
    policy: Policy,
) -> Interval | Insufficient:
    """Compare quantiles; the design effect of an arm's exceedances sets its independent draws."""
    q, confidence = quantile_of(cell.rule.stat), 1 - policy.alpha_pass
    exceeds = [exceedances(values, q) for values in (candidate, baseline)]
    effects = dependence.joined(*(a.effect(x) for a, x in zip(arms, exceeds, strict=True)))
    worth = [
        stretches.draws(arm.in_order(x), effect, arm.stretch(x), confidence)
        for x, arm, effect in zip(exceeds, arms, effects, strict=True)
    ]
    found = quantile_ratio(
        candidate,
        baseline,
        q=q,
        draws=(worth[0], worth[1]),
        **cell.margin_at(dependence.fewest(effects).confidence(confidence)),
    )
    found = dependence.fewest(effects).with_students_p(found)
    found = _doubted(found, min(q, 1 - q) * len(candidate), effects)

    def log_ratio(rows: BoolColumn) -> float:
        return log_quantile(candidate[rows], q) - log_quantile(baseline[rows], q)

    return widened_by_launches(found, log_ratio, arms[0].launches, cell, policy)


def log_quantile(values: FloatColumn, q: float) -> float:
    """Return the logarithm of a sample's q quantile."""
    return math.log(ordered_percentile(np.sort(values), q))


def _doubted(
    found: Interval | Insufficient, beyond: float, effects: Sequence[Effect]
) -> Interval | Insufficient:
    """Set a doubt on the limits if the values beyond the quantile come in few stretches."""
    groups = beyond / max(effect.ratio for effect in effects)
    if isinstance(found, Insufficient) or groups >= MIN_STRETCHES or not effects[0].proved:
        return found
    words = (
        f"the {beyond:.0f} requests beyond the quantile came in about {groups:.1f} stretches; "
        f"wanted {MIN_STRETCHES} at least"
    )
    return replace(found, doubt=words)


def exceedances(values: FloatColumn, q: float) -> FloatColumn:
    """Return 1 for values above their sample's q quantile, else 0."""
    return (values > ordered_percentile(np.sort(values), q)).astype(np.float64)


def _stretched(
    limits: stretches.Method,
    differences: FloatColumn,
    pairs: Arrangement,
    cell: Cell,
    policy: Policy,
) -> Interval | Insufficient:
    return stretches.widened(
        limits,
        pairs.in_order(differences),
        pairs.stretch(differences),
        **cell.margin_at(1 - policy.alpha_pass),
    )
