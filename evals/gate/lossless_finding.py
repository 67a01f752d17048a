"""The finding that a lossless policy's cells have in common, and what bars its pass."""

from typing import NamedTuple

from collector.contract import Finding, Outcome, Reason, Role
from evals.evidence.columns import BoolColumn, Evidence
from evals.gate.measured import Obstacle, unaccounted
from evals.policy import Policy
from evals.stats import Interval
from evals.stats.significant import significant


class LosslessComparison(NamedTuple):
    """A comparison of a lossless policy: its measure, method and margin."""

    metric: str
    stat: str
    margin: float
    alpha: float
    method: str


def lossless_finding(  # noqa: PLR0913  # one argument a field
    compared: LosslessComparison,
    outcome: Outcome,
    reason: Reason | None,
    message: str,
    *,
    n: int,
    needed: int | None,
    interval: Interval | None = None,
    p_fail: float | None = None,
    role: Role = Role.PROVE,
    unit: str = "ratio",
) -> Finding:
    """Return the pooled finding; without an interval it has no limits."""
    return Finding(
        metric=compared.metric,
        stat=compared.stat,
        cohort=None,
        role=role,
        outcome=outcome,
        reason=reason,
        bound="max",
        margin=compared.margin,
        unit=unit,
        confidence=1 - compared.alpha,
        n=n,
        n_needed=needed,
        estimate=None if interval is None else significant(interval.estimate),
        lower=None if interval is None else significant(interval.lower),
        upper=None if interval is None else significant(interval.upper),
        p_fail=significant(p_fail, 6),
        method=compared.method,
        message=message,
        note=message,
    )


def lost_pairs(evidence: Evidence, rows: BoolColumn, policy: Policy) -> Obstacle | None:
    """Return the obstacle that failed or incomplete pairs are left out, if they bar a pass."""
    lost = int((~(evidence.baseline.answered & evidence.candidate.answered) & rows).sum())
    return unaccounted(lost, policy)
