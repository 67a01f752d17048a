"""Measure a cell, and compute how many more pairs would decide it."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm
from scipy.stats import t as student

from collector.contract import Reason
from evals.evidence.columns import BoolColumn, Evidence
from evals.evidence.launches import ENOUGH
from evals.gate.cache_cells import measure_cache
from evals.gate.cells import Cell
from evals.gate.latency_cells import measure_latency
from evals.gate.measured import Measurement, Obstacle, within
from evals.gate.score_cells import measure_failures, measure_scores
from evals.gate.split_cells import measure_split
from evals.gate.sum_cells import measure_sums
from evals.policy import Policy
from evals.stats import Interval
from evals.stats.interval import LaunchSpread

_MOST_PAIRS = 10_000_000
_POWER = 0.8
_HARM_Z = 1.645
_SEEN_Z = 0.5
_MOST_SEEN = 0.3
"""Of the score that decides, the largest effect that is planned for if no change has no room:
cells that saw more, and stay undecided, were mostly lucky."""
_MOST_LAUNCHES = 1_000
_HALFWAY, _NO_CHANGE = 0.5, 1.0
"""Shares of the distance of no change towards which a planned effect is drawn."""


def measure(cell: Cell, evidence: Evidence, policy: Policy) -> Measurement:
    """Measure one cell; despite an obstacle the numbers are kept, for the report."""
    return _with_need(cell, _measured(cell, evidence, policy), policy)


def _measured(cell: Cell, evidence: Evidence, policy: Policy) -> Measurement:
    scope = evidence.scope(cell.cohort)
    absent = _absent(cell, evidence, scope)
    if absent is not None:
        return Measurement(n=0, prompts=0, obstacle=absent)
    if not cell.paired and cell.metric.kind != "cache":
        return measure_split(cell, evidence, scope, policy)
    if cell.rule.stat == "mean_ratio" or cell.metric.kind == "tokens":
        return measure_sums(cell, evidence, scope, policy)
    of_kind = {"failures": measure_failures, "cache": measure_cache}.get(cell.metric.kind)
    if of_kind is not None:
        return of_kind(cell, evidence, scope, policy)
    if cell.metric.scored:
        return measure_scores(cell, evidence, scope, policy)
    return measure_latency(cell, evidence, scope, policy)


def pairs_to_decide(
    cell: Cell, measured: Measurement, alpha_pass: float, alpha_fail: float
) -> int | None:
    """Return the further pairs that decide the cell with a probability of .8.

    In standard errors of the pairs seen, which grow with √n, z is the observed distance from the
    margin, and d the distance of no change. The planned effect is z shrunk towards half of d,
    (z + 2/d)/(1 + 4/d²), or z/2, at most .3 of what decides, if the margin leaves no room for a
    change: undecided cells are those that were unlucky, or lucky beyond the truth. The new pairs
    must suffice both alone and together with those seen. If z shows at 5 % that the candidate is
    worse, the pairs are those that prove it. `None` without room if z is at most ½, when next to
    nothing was seen, and beyond ten million pairs.
    """
    if measured.interval is None or measured.n == 0:
        return None
    needed_z = float(norm.isf(alpha_pass))
    z = min(_score(measured.p_pass), needed_z)
    distances = _Distances(z, _room(cell, measured, z, needed_z), _score(measured.interval.p_fail))
    growth = _growth_to_decide(distances, _HALFWAY, alpha_pass, alpha_fail)
    if growth is None:
        return None
    total = max(measured.n * growth, float(cell.min_n))
    return max(1, int(np.ceil(round(total, 6))) - measured.n) if total <= _MOST_PAIRS else None


def launches_to_decide(
    cell: Cell, spread: LaunchSpread, alpha_pass: float, alpha_fail: float
) -> int | None:
    """Return the further launches of each arm that decide the cell with a probability of .8.

    Like `pairs_to_decide`, with one value per launch; the planned effect is z shrunk towards d (no
    change), because a few launches show their spread but little of the effect. `None` also if a
    launch's value is infinite, and beyond a thousand launches.
    """
    n, found, limit = len(spread.values), spread.limits, _limit(cell, spread.limits)
    if limit is None or found.estimate is None:
        return None
    if cell.is_ratio and min(limit, found.estimate) <= 0:
        return None
    end, estimate, margin = (
        math.log(x) if cell.is_ratio else x for x in (limit, found.estimate, cell.rule.margin)
    )
    error = abs(end - estimate) / float(student.isf(alpha_pass, n - 1))
    if error == 0:
        return None
    side = 1.0 if cell.rule.bound == "max" else -1.0
    z = side * (margin - estimate) / error
    room = max(side * margin, 0.0) / error
    growth = _growth_to_decide(_Distances(z, room, -z), _NO_CHANGE, alpha_pass, alpha_fail)
    if growth is None or (total := max(n * growth, ENOUGH)) > _MOST_LAUNCHES:
        return None
    return max(1, math.ceil(round(total, 6)) - n)


class _Distances(NamedTuple):
    """The observed distances towards a pass and towards a fail, in standard errors."""

    z_pass: float
    room: float
    z_fail: float


def _growth_to_decide(
    distances: _Distances, towards: float, alpha_pass: float, alpha_fail: float
) -> float | None:
    """Return the factor by which the evidence must grow to decide; `None` if unknown."""
    needed_z = float(norm.isf(alpha_pass))
    z = min(distances.z_pass, needed_z)
    effect = _planned(z, distances.room, towards, needed_z)
    if z < -_HARM_Z or effect <= 0:
        needed_z = float(norm.isf(alpha_fail))
        z = min(distances.z_fail, needed_z)
        effect = _planned(z, 0.0, towards, needed_z)
    return None if effect <= 0 else _growth(z, effect, needed_z)


def _score(p: float) -> float:
    """Return the normal score of a p value, finite."""
    return float(norm.isf(min(max(p, 1e-15), 1 - 1e-15)))


def _planned(z: float, room: float, towards: float, needed_z: float) -> float:
    if room > 0:
        return (z + 4 * towards / room) / (1 + 4 / room**2)
    return min(z / 2, _MOST_SEEN * needed_z) if z > _SEEN_Z else 0.0


def _room(cell: Cell, measured: Measurement, z: float, needed_z: float) -> float:
    """Return the distance from the margin to no change, in standard errors; 0 beyond."""
    ratio, interval = cell.is_ratio, measured.interval
    side = 1.0 if cell.rule.bound == "max" else -1.0
    margin = math.log(cell.rule.margin) if ratio else cell.rule.margin
    if interval is None or interval.estimate is None or side * margin <= 0:
        return 0.0
    limit = _limit(cell, interval)
    ends = [interval.estimate if limit is None else limit, interval.estimate]
    if ratio and min(ends) <= 0:
        return 0.0
    end, estimate = (math.log(x) if ratio else x for x in ends)
    if limit is None:
        return abs(margin * z / (margin - estimate)) if margin != estimate else 0.0
    error = abs(end - estimate) / needed_z
    return abs(margin) / error if error > 0 else 0.0


def _limit(cell: Cell, interval: Interval) -> float | None:
    """Return the limit on the margin's side."""
    return interval.upper if cell.rule.bound == "max" else interval.lower


def _growth(z: float, effect: float, needed_z: float) -> float:
    """Return by how much the pairs must grow so that new ones decide, alone and with those seen."""
    power = float(norm.ppf(_POWER))

    def lacking(growth: float) -> float:
        alone = effect * math.sqrt(growth) - needed_z
        new = growth - 1
        joined = (z + effect * new - needed_z * math.sqrt(growth)) / math.sqrt(max(new, 1e-12))
        return min(alone, joined) - power

    most = 2.0
    while lacking(most) < 0 and most < _MOST_PAIRS:
        most *= 2
    return float(brentq(lacking, 1.0, most)) if lacking(most) >= 0 else math.inf


def _with_need(cell: Cell, measured: Measurement, policy: Policy) -> Measurement:
    """Set the pairs needed, if they are more than the method's minimum."""
    obstacle = measured.obstacle
    if obstacle is None or obstacle.reason is not Reason.TOO_FEW or obstacle.n_needed is None:
        return measured
    interval = measured.interval
    limit = None if interval is None else _limit(cell, interval)
    if interval is None or limit is None or within(cell, interval):
        return measured
    needed = pairs_to_decide(cell, measured, policy.alpha_pass, policy.alpha_fail_family)
    if needed is None or needed <= obstacle.n_needed:
        return measured
    words = f"needs about {cell.counted(needed, 'more ')} (at least {cell.min_n} in all)"
    return replace(measured, obstacle=replace(obstacle, words=words, n_needed=needed))


def _absent(cell: Cell, evidence: Evidence, scope: BoolColumn) -> Obstacle | None:
    """Return the obstacle that a cohort, all pairs or a whole arm is missing, if one is."""
    if cell.rule.scope == "cohort" and cell.cohort is None and not evidence.all_cohorts:
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
