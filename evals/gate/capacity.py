"""Capacity: what each arm served within the bounds of goodput, and how fast."""

from collections.abc import Iterator

import numpy as np

from collector.contract import Arm, ArmCapacity, Reason
from evals.evidence.columns import Evidence
from evals.gate.measured import Obstacle
from evals.gate.time_in_use import time_in_use
from evals.policy import Policy
from evals.stats.significant import significant

_MAX_LOAD_APART = 1.05
"""Maximum ratio of the arms' numbers in flight for a comparison of their throughput."""


def capacity(evidence: Evidence, policy: Policy) -> tuple[ArmCapacity, ...]:
    """Return each arm's capacity: of all pairs first, then of each cohort.

    Nothing if the policy neither bounds goodput nor judges throughput.
    """
    judged = any(rule.metric == "throughput" for rule in policy.rules)
    if policy.goodput is None and not judged:
        return ()
    return tuple(
        _of(evidence, policy, cohort, arm)
        for cohort in (None, *evidence.all_cohorts)
        for arm in Arm
    )


def _of(evidence: Evidence, policy: Policy, cohort: str | None, arm: Arm) -> ArmCapacity:
    side, scope = evidence.side(arm), evidence.scope(cohort)
    asked = scope if policy.paired else scope & side.present
    good = None if policy.goodput is None else side.score("goodput")[asked]
    kept = None if good is None else int((good == 1).sum())
    elapsed_s = time_in_use(side).elapsed_s
    tokens = side.output_tokens[scope & side.answered & ~side.fallback]
    return ArmCapacity(
        cohort=cohort,
        arm=arm,
        requests=int(asked.sum()),
        good=kept,
        unknown=None if good is None else int(np.isnan(good).sum()),
        good_per_s=None if kept is None else _rate(kept, elapsed_s),
        output_tokens_per_s=None if np.isnan(tokens).any() else _rate(tokens.sum(), elapsed_s),
        in_flight=significant(time_in_use(side, scope).in_flight),
    )


def _rate(count: float, seconds: float) -> float | None:
    return significant(float(count) / seconds) if seconds > 0 else None


def other_loads(evidence: Evidence) -> Iterator[Obstacle]:
    """Yield an obstacle for throughput unless both arms had the same number in flight."""
    loads = {arm: time_in_use(side).in_flight for side, arm in evidence.arms}
    known = [load for load in loads.values() if load is not None]
    if len(known) == len(loads) and max(known) <= _MAX_LOAD_APART * min(known):
        return
    shown = " and ".join(
        f"{'unknown' if load is None else format(load, '.3g')} for the {arm}"
        for arm, load in loads.items()
    )
    words = (
        f"throughput is compared at one number in flight, which was {shown} (mean); replay in a "
        "closed loop (`load: {concurrency: 8}`), in which each arm keeps the same number"
    )
    yield Obstacle(Reason.MISMATCH, words)
