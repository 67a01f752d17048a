"""Judge unbounded statistics, such as a p95, by the gate's methods at declared looks."""

from dataclasses import replace

from collector.contract import Outcome, Reason, WatchCell, WatchLook
from evals.evidence.columns import Evidence
from evals.gate.measured import Measurement, Obstacle, within
from evals.gate.measurement import measure
from evals.gate.validity import violations
from evals.policy import Policy
from evals.watch.early_pairs import EarlyPairs
from evals.watch.plan import gate_cell


def with_looks(cell: WatchCell, early: EarlyPairs, n: int, policy: Policy) -> WatchCell:
    """Return the cell with each look that `n` pairs have reached; later pairs wait for the next."""
    cell = replace(cell, n=n)
    while cell.next_look is not None and cell.next_look <= n:
        cell = _at_look(cell, cell.next_look, early, policy)
    return cell


def _at_look(cell: WatchCell, pairs: int, early: EarlyPairs, policy: Policy) -> WatchCell:
    index = next(i for i, one in enumerate(cell.looks) if one.pairs == pairs)
    found = _judged_look(cell, cell.looks[index], early, policy)
    looks = (*cell.looks[:index], found, *cell.looks[index + 1 :])
    later = [one.pairs for one in looks[index + 1 :]]
    spent = sum(one.alpha for one in looks)
    # Each look's p value is scaled by its share of the level (Bonferroni).
    ps = [one.p_fail * spent / one.alpha for one in looks if one.p_fail is not None]
    return replace(
        cell,
        looks=looks,
        next_look=later[0] if later else None,
        estimate=found.estimate,
        lower=found.lower,
        upper=found.upper,
        p_fail=min([1.0, *ps]) if ps else None,
    )


def _judged_look(cell: WatchCell, one: WatchLook, early: EarlyPairs, policy: Policy) -> WatchLook:
    if policy.paired:
        evidence = early.first(cell.cohort, one.pairs)
    else:
        evidence = early.first_answers(one.pairs, cell.cohort)
    if evidence is None:
        return replace(
            one,
            outcome=Outcome.INCONCLUSIVE,
            reason=Reason.MISSING,
            message="the pairs of this look are no longer stored",
        )
    return _judged_evidence(cell, one, evidence, policy)


def _judged_evidence(
    cell: WatchCell, one: WatchLook, evidence: Evidence, policy: Policy
) -> WatchLook:
    at_look = replace(policy, alpha_pass=one.alpha)
    tested = gate_cell(cell, policy, one.alpha)
    found: Measurement = measure(tested, evidence, at_look)
    broken = [v.obstacle for v in violations(evidence, policy) if v.touches(tested)]
    obstacle: Obstacle | None = found.obstacle or (broken[0] if broken else None)
    interval = found.interval
    passes = obstacle is None and interval is not None and within(tested, interval)
    reason = Reason.TOO_FEW if obstacle is None else obstacle.reason
    return replace(
        one,
        outcome=Outcome.PASS if passes else Outcome.INCONCLUSIVE,
        reason=None if passes else reason,
        estimate=None if interval is None else interval.estimate,
        lower=None if interval is None else interval.lower,
        upper=None if interval is None else interval.upper,
        p_fail=interval.p_fail if interval is not None and obstacle is None else None,
        message=None if obstacle is None else obstacle.words,
    )
