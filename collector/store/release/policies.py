"""Policies registered for rollouts: rows are added, never changed.

The policy in force is the newest of those registered before the first pair.
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from collector.contract import Arm, PolicyRegistration, RegisteredPolicy
from collector.store import rollup_reads
from collector.store.tables import registered_policy as p


def add(
    connection: Connection,
    rollout: str,
    given: PolicyRegistration,
    *,
    who: str,
    key_id: str | None,
    unix_ns: int,
) -> RegisteredPolicy:
    """Register a policy and return it; the transaction must exclude other writers.

    If it equals the policy in force or the newest one, return that one and add no row.
    """
    known = of_rollout(connection, rollout)
    before = not _both_arms(connection, rollout)
    last = next(iter(known), None)
    for same in (in_force(known), last):
        is_last = same is not None and (same is last or not before)
        if same is not None and is_last and same.policy_hash == given.policy_hash:
            return same
    added = connection.execute(
        insert(p)
        .values(
            rollout=rollout,
            policy_name=given.policy_name,
            policy_hash=given.policy_hash,
            text=given.text,
            before_first_pair=before,
            who=who,
            key_id=key_id,
            time_unix_ns=unix_ns,
        )
        .returning(p)
    )
    return _policy(added.one())


def of_rollout(connection: Connection, rollout: str) -> tuple[RegisteredPolicy, ...]:
    """Return all policies registered for a rollout, newest first."""
    statement = select(p).where(p.c.rollout == rollout).order_by(p.c.id.desc())
    return tuple(_policy(row) for row in connection.execute(statement))


def in_force(known: Iterable[RegisteredPolicy]) -> RegisteredPolicy | None:
    """Return the policy in force, if any, given a rollout's policies newest first."""
    return next((one for one in known if one.before_first_pair), None)


def _both_arms(connection: Connection, rollout: str) -> bool:
    """Return whether both arms have generations; otherwise the rollout has no pair."""
    arms = {series.arm for series in rollup_reads.series_of(connection, rollout).values()}
    return {Arm.BASELINE, Arm.CANDIDATE} <= arms


def _policy(row: Row[Any]) -> RegisteredPolicy:
    return RegisteredPolicy(**row._asdict())
