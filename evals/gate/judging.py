"""Judge every cell once: its limits, obstacles and Holm-corrected p value make its finding."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from collector.contract import Finding, Outcome, Reason, Role
from evals.evidence.columns import Evidence
from evals.gate.cells import Cell, plan
from evals.gate.control import control_obstacles
from evals.gate.measured import Measurement, Obstacle, within
from evals.gate.measurement import launches_to_decide, measure, pairs_to_decide
from evals.gate.treatment import idle
from evals.gate.validity import violations
from evals.gate.wording import finding_message, reason_words, too_few_launches
from evals.gate.wording import undecided as undecided_words
from evals.policy import Policy
from evals.stats import Interval
from evals.stats.holm import adjusted
from evals.stats.significant import significant


def judge_once(
    evidence: Evidence, policy: Policy, control: Evidence | None = None
) -> tuple[Finding, ...]:
    """Return every cell's finding; failures are Holm-corrected over all prove and guard cells."""
    cells = plan(evidence, policy)
    measured = measured_cells(cells, evidence, policy, control)
    corrected = corrected_p(cells, [family_p(m) for m in measured])
    family = family_size(cells)
    return tuple(
        finding_of(cell, m, p, policy, family)
        for cell, m, p in zip(cells, measured, corrected, strict=True)
    )


def measured_cells(
    cells: Sequence[Cell], evidence: Evidence, policy: Policy, control: Evidence | None
) -> list[Measurement]:
    """Measure the cells, with the obstacles of validity."""
    slices = {c: evidence.take(evidence.scope(c)) for c in {cell.cohort for cell in cells}}
    measured = [measure(cell, slices[cell.cohort], policy) for cell in cells]
    return _valid(cells, measured, (evidence, control), policy)


def corrected_p(cells: Sequence[Cell], ps: Sequence[float | None]) -> list[float | None]:
    """Return the p values, those of prove and guard cells corrected over all of these."""
    deciding = [i for i, cell in enumerate(cells) if cell.rule.role is not Role.REPORT]
    chains = [cells[i].chain for i in deciding]
    corrected = adjusted([ps[i] for i in deciding], chains)
    of = dict(zip(deciding, corrected, strict=True))
    return [of.get(i, p) for i, p in enumerate(ps)]


def family_size(cells: Sequence[Cell]) -> int:
    """Return the number of hypotheses in Holm's family; a chain counts once, and 1 at least."""
    return max(len({cell.chain for cell in cells if cell.rule.role is not Role.REPORT}), 1)


def _valid(
    cells: Sequence[Cell],
    measured: list[Measurement],
    evidence: tuple[Evidence, Evidence | None],
    policy: Policy,
) -> list[Measurement]:
    """Add the obstacles of validity to the cells that were measured."""
    broken = violations(evidence[0], policy)
    untreated = idle(evidence[0], policy)
    controls = control_obstacles(cells, evidence[1], policy)
    result = []
    for cell, m, unquiet in zip(cells, measured, controls, strict=True):
        found = [v.obstacle for v in broken if v.touches(cell)]
        found += [] if untreated is None else [untreated]
        found += [] if unquiet is None else [unquiet]
        nothing = m.n == 0 and m.obstacle is not None
        own = [] if m.obstacle is None else [m.obstacle]
        result.append(m if nothing or not found else replace(m, obstacle=_first_of(found, own)))
    return result


def _first_of(found: Sequence[Obstacle], own: Sequence[Obstacle]) -> Obstacle:
    """Return the first obstacle, combined with what any of them bars."""
    every = (*found, *own)
    return replace(
        found[0],
        bars_fail=any(o.bars_fail for o in every),
        bars_harm=any(o.bars_harm for o in every),
    )


class _CellOutcome(NamedTuple):
    outcome: Outcome
    obstacle: Obstacle | None


def family_p(measured: Measurement) -> float | None:
    """Return the cell's p value in Holm's family; despite an obstacle only that of certain harm."""
    obstacle = measured.obstacle
    if obstacle is not None and obstacle.bars_harm:
        return None
    if obstacle is not None and obstacle.bars_fail:
        return measured.p_harm
    return None if measured.interval is None else measured.interval.p_fail


def _judge(
    cell: Cell, measured: Measurement, p_corrected: float | None, policy: Policy, family: int
) -> _CellOutcome:
    if measured.obstacle is not None:
        if p_corrected is not None and p_corrected <= policy.alpha_fail_family:
            return _CellOutcome(Outcome.FAIL, None)
        return _CellOutcome(Outcome.INCONCLUSIVE, measured.obstacle)
    interval = measured.interval
    if interval is None:
        return _CellOutcome(Outcome.INCONCLUSIVE, Obstacle(Reason.MISSING, "no limits exist"))
    if within(cell, interval):
        return _CellOutcome(Outcome.PASS, None)
    if p_corrected is not None and p_corrected <= policy.alpha_fail_family:
        return _CellOutcome(Outcome.FAIL, None)
    levels = (policy.alpha_pass, policy.alpha_fail_family / family)
    return _CellOutcome(Outcome.INCONCLUSIVE, _undecided(cell, measured, interval, levels))


def _undecided(
    cell: Cell, measured: Measurement, interval: Interval, levels: tuple[float, float]
) -> Obstacle:
    """Return the obstacle that launches or pairs are lacking, with their number."""
    if interval.launches is not None and interval.launches.binds:
        seen = len(interval.launches.values)
        return too_few_launches(seen, launches_to_decide(cell, interval.launches, *levels))
    return undecided_words(cell, measured, pairs_to_decide(cell, measured, *levels))


def finding_of(
    cell: Cell, measured: Measurement, p_corrected: float | None, policy: Policy, family: int
) -> Finding:
    """Return the finding on a measured cell; `family` is the number of hypotheses."""
    outcome, obstacle = _judge(cell, measured, p_corrected, policy, family)
    interval, rule = measured.interval, cell.rule
    because = None if obstacle is None else reason_words(obstacle.reason, obstacle.words)
    return Finding(
        metric=rule.metric,
        stat=rule.stat,
        cohort=cell.cohort,
        role=rule.role,
        outcome=outcome,
        reason=None if obstacle is None else obstacle.reason,
        bound=rule.bound,
        margin=rule.margin,
        unit="ratio" if cell.is_ratio else "difference",
        confidence=1 - policy.alpha_pass,
        n=measured.n,
        n_needed=None if obstacle is None else obstacle.n_needed,
        launches=_by_launch(interval),
        launches_needed=None if obstacle is None else obstacle.launches_needed,
        estimate=None if interval is None else significant(interval.estimate),
        lower=None if interval is None else significant(interval.lower),
        upper=None if interval is None else significant(interval.upper),
        p_fail=None if interval is None else significant(interval.p_fail, 6),
        method=cell.method if interval is None else interval.method,
        message=finding_message(cell, measured, outcome, because),
        note=measured.note,
        because=because,
    )


def _by_launch(interval: Interval | None) -> tuple[float | None, ...]:
    if interval is None or interval.launches is None:
        return ()
    return tuple(significant(x) if math.isfinite(x) else None for x in interval.launches.values)
