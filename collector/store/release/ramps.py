"""Ramps of rollouts: an audit log whose newest step is the candidate's share of traffic."""

import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select

from collector.contract import Outcome, RampChange, RampStep, RegisteredPolicy, Verdict
from collector.errors import ConflictError
from collector.nouns import counted
from collector.store.release import policies, verdicts
from collector.store.tables import generation as g
from collector.store.tables import ramp_step as r


def add(
    connection: Connection, rollout: str, change: RampChange, *, who: str, unix_ns: int
) -> RampStep:
    """Store a step and return it; the transaction must exclude other writers.

    Raises `ConflictError` if another step was stored first. A larger share also requires that the
    newest verdict under the registered policy is a pass on pairs that arrived after the last step.
    """
    last = next(iter(newest(connection, rollout, limit=1)), None)
    stands = 0 if last is None else last.id
    if stands != change.continues:
        raise ConflictError(
            f"ramp of {rollout!r}: wanted to follow step {change.continues}, but {stands} is the "
            "newest: somebody else took one; look where the ramp stands, and decide again"
        )
    if last is not None and change.percent > last.percent:
        _require_pass(connection, last, change)
    added = connection.execute(
        insert(r)
        .values(
            rollout=rollout,
            percent=change.percent,
            reason=change.reason,
            verdict=change.verdict,
            who=who,
            time_unix_ns=unix_ns,
            arrived_up_to=connection.scalar(select(func.max(g.c.id))) or 0,
        )
        .returning(r)
    )
    return _step(added.one())


def newest(connection: Connection, rollout: str, *, limit: int) -> tuple[RampStep, ...]:
    """Return the rollout's latest steps, newest first."""
    statement = select(r).where(r.c.rollout == rollout).order_by(r.c.id.desc()).limit(limit)
    return tuple(_step(row) for row in connection.execute(statement))


def newest_of_each(connection: Connection, rollouts: Collection[str]) -> dict[str, RampStep]:
    """Return the latest step of each of these rollouts that has any."""
    last = select(func.max(r.c.id)).where(r.c.rollout.in_(rollouts)).group_by(r.c.rollout)
    steps = map(_step, connection.execute(select(r).where(r.c.id.in_(last))))
    return {step.rollout: step for step in steps}


def _require_pass(connection: Connection, last: RampStep, change: RampChange) -> None:
    """Raise `ConflictError` unless the newest verdict under the registered policy allows the step.

    The step must name that verdict. It must be a pass on pairs that all arrived after the last
    step, and on at least as many as the policy's `min_n` for a cohort.
    """
    at = f"ramp of {last.rollout!r}: from {last.percent:g} % to {change.percent:g} %"
    policy = policies.in_force(policies.of_rollout(connection, last.rollout))
    if policy is None:
        raise ConflictError(
            f"{at} needs a policy that was registered before the first pair, and there is none: "
            "begin again under a new name, after `draftgate register NAME --policy FILE`"
        )
    given = verdicts.newest_since(
        connection, last.rollout, last.time_unix_ns, policy_hash=policy.policy_hash
    )
    under = f"the registered policy {policy.policy_name} {policy.policy_hash[:12]}"
    if given is None:
        raise ConflictError(
            f"{at} needs a passing verdict under {under}, newer than the step; none was posted "
            f"since. Run `draftgate gate {last.rollout} --since-step` on what arrived meanwhile"
        )
    if given.verdict.outcome is not Outcome.PASS:
        raise ConflictError(
            f"{at} needs a passing verdict under {under}; the newest one is "
            f"{given.verdict.outcome}: {given.verdict.summary}"
        )
    if given.id != change.verdict:
        raise ConflictError(
            f"{at} names the verdict {change.verdict or 'none'}; the newest is {given.id}: "
            "read it, and decide again"
        )
    _require_young(at, last, given.verdict, policy)


def _require_young(at: str, last: RampStep, verdict: Verdict, policy: RegisteredPolicy) -> None:
    judged = [part for part in verdict.evidence if not part.control]
    again = f"run `draftgate gate {last.rollout} --since-step`"
    if [part.rollout for part in judged] != [last.rollout]:
        raise ConflictError(f"{at} needs a verdict of the gate on this rollout alone: {again}")
    if judged[0].arrived_after < last.arrived_up_to:
        raise ConflictError(
            f"{at} needs a verdict on pairs that all arrived after the step; this one rests on "
            f"older ones too: {again}"
        )
    wanted = int(json.loads(policy.text).get("min_n", 1))
    if verdict.pairs < wanted:
        raise ConflictError(
            f"{at} needs at least {counted(wanted, 'pair')} that arrived after the step, as the "
            f"policy says; the verdict rests on {verdict.pairs}"
        )


def _step(row: Row[Any]) -> RampStep:
    return RampStep(**row._asdict())
