"""The cells that a policy makes for live traffic; a cohort's appear with its first pair."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from collector.contract import EffectSums, EProcess, Role, Watch, WatchCell, WatchLook
from evals.gate.cells import Cell, least_pairs
from evals.policy import Policy
from evals.policy.rules import METRICS, Rule
from evals.policy.sections import Live, scaled
from evals.stats import confidence_sequence
from evals.stats.bets import BETS, METHOD

EXCEEDANCE = "slo_exceedance"
BOUNDED = ("score", "goodput", "failures")
"""Kinds of metric whose differences lie in [−1, 1]."""


def live(policy: Policy) -> Live:
    """Return the policy's rules for live traffic, or the defaults."""
    return policy.live or scaled(policy.alpha_pass)


def begin(rollout: str, policy: Policy) -> Watch:
    """Return the state before the first pair."""
    none = Watch(rollout=rollout, policy_name=policy.name, policy_hash=policy.policy_hash)
    threshold_s = None if (r := live(policy).rollback) is None else r.threshold_s
    return replace(none, cells=tuple(_cells((), policy, none)), threshold_s=threshold_s,
                   exceed_after=None if threshold_s is None else 0)  # fmt: skip


def with_cohorts(watch: Watch, policy: Policy) -> Watch:
    """Add the cells of new cohorts, and of new scores in cohorts."""
    known = {key(cell): cell for cell in watch.cells}
    cells = (known.get(key(cell), cell) for cell in _cells(_cohorts(watch), policy, watch))
    return replace(watch, cells=tuple(cells))


def key(cell: WatchCell) -> tuple[object, ...]:
    """Return the key that identifies a cell."""
    return (cell.metric, cell.stat, cell.cohort, cell.role, cell.bound, cell.margin, cell.pass_at)


def chain(cell: WatchCell) -> tuple[object, ...]:
    """Return the key of the cells that differ only in their margin, like the gate's `chain`."""
    return (cell.metric, cell.stat, cell.cohort, cell.bound, cell.pass_at)


def is_bounded(metric: str) -> bool:
    """Return whether e-values or the confidence sequence judge a metric."""
    return metric == EXCEEDANCE or METRICS[metric].kind in BOUNDED


def gate_cell(cell: WatchCell, policy: Policy, alpha: float) -> Cell:
    """Convert a cell to the gate's, at the level of a look."""
    rule = Rule(
        role=cell.role,
        metric=cell.metric,
        stat=cell.stat,
        bound="min" if cell.bound == "min" else "max",
        margin=cell.margin,
        scope="pooled" if cell.cohort is None else "cohort",
        cohorts=None,
        pass_at=cell.pass_at,
    )
    at_look = replace(policy, alpha_pass=alpha)
    return Cell(rule, cell.cohort, least_pairs(rule, cell.cohort, at_look), policy.paired)


def _cohorts(watch: Watch) -> Sequence[str]:
    seen = {c.cohort for c in watch.cohorts if c.complete or c.baseline or c.candidate}
    return sorted(cohort for cohort in seen | set(watch.workload) if cohort is not None)


def cohorts_of(rule: Rule, cohorts: Sequence[str], watch: Watch) -> Sequence[str]:
    """Return the cohorts for which a rule by cohort makes a cell.

    For a score: cohorts whose pairs have it or carry what it needs; if there are any, also cohorts
    of which that is not recorded or nothing has arrived.
    """
    if rule.cohorts is not None:
        return rule.cohorts
    if METRICS[rule.metric].kind != "score":
        return cohorts
    known = {c.cohort: c for c in watch.cohorts}
    some = [c for c in watch.cohorts if c.scored.get(rule.metric) or c.owed.get(rule.metric)]
    return [
        cohort
        for cohort in cohorts
        if some and (cohort not in known or known[cohort] in some or known[cohort].unsaid)
    ]


def _cells(cohorts: Sequence[str], policy: Policy, watch: Watch) -> Iterator[WatchCell]:
    for rule in policy.rules:
        if rule.scope == "pooled":
            yield _cell(rule, None, policy)
            continue
        for cohort in cohorts_of(rule, cohorts, watch):
            yield _cell(rule, cohort, policy)
    if (rollback := live(policy).rollback) is not None:
        yield _bounded(
            WatchCell(
                metric=EXCEEDANCE,
                stat="diff",
                cohort=None,
                role=Role.GUARD,
                bound="max",
                margin=rollback.margin,
                pass_at=1.0,
                method="",
            ),
            policy,
        )


def _cell(rule: Rule, cohort: str | None, policy: Policy) -> WatchCell:
    plain = WatchCell(
        metric=rule.metric,
        stat=rule.stat,
        cohort=cohort,
        role=rule.role,
        bound=rule.bound,
        margin=rule.margin,
        pass_at=rule.pass_at,
        method="",
    )
    if is_bounded(rule.metric):
        return _bounded(plain, policy)
    rules = live(policy)
    looks = tuple(
        WatchLook(pairs=pairs, alpha=alpha)
        for pairs, alpha in zip(rules.looks, rules.spend, strict=True)
    )
    method = Cell(rule, cohort, 1, policy.paired).method
    return replace(plain, method=method, looks=looks, next_look=looks[0].pairs)


def _bounded(cell: WatchCell, policy: Policy) -> WatchCell:
    if not policy.paired:
        return replace(cell, method=confidence_sequence.METHOD, split=EffectSums())
    slack = loss_margin(cell)
    return replace(cell, method=METHOD, passing=fresh(-slack), failing=fresh(slack))


def loss_margin(cell: WatchCell) -> float:
    """Return the acceptable loss, at least 0, for a margin on either side."""
    return cell.margin if cell.bound == "max" else -cell.margin


def fresh(limit: float) -> EProcess:
    """Return an e-process without data."""
    return EProcess(limit=limit, log_wealth=(0.0,) * BETS)
