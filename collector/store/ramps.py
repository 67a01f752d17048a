"""Ramps of rollouts: an audit log whose newest step is the share that the candidate gets."""

from typing import Any

from sqlalchemy import Connection, Row, insert, select

from collector.contract import Outcome, RampChange, RampStep
from collector.errors import ConflictError
from collector.store import verdicts
from collector.store.tables import ramp_step as r


def add(
    connection: Connection, rollout: str, change: RampChange, *, who: str, unix_ns: int
) -> RampStep:
    """Store a step and return it; the transaction must exclude other writers.

    Raises `ConflictError` where somebody else took a step first, and where a larger share does not
    rest on the rollout's newest verdict, a pass that is newer than the step before.
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
    id_ = connection.scalar(
        insert(r)
        .values(
            rollout=rollout,
            percent=change.percent,
            reason=change.reason,
            verdict=change.verdict,
            who=who,
            time_unix_ns=unix_ns,
        )
        .returning(r.c.id)
    )
    return _step(connection.execute(select(r).where(r.c.id == id_)).one())


def newest(connection: Connection, rollout: str, *, limit: int) -> tuple[RampStep, ...]:
    """Return the rollout's latest steps, newest first."""
    statement = select(r).where(r.c.rollout == rollout).order_by(r.c.id.desc()).limit(limit)
    return tuple(_step(row) for row in connection.execute(statement))


def _require_pass(connection: Connection, last: RampStep, change: RampChange) -> None:
    """Raise `ConflictError` unless the newest verdict since the last step passes, and is named."""
    given = verdicts.newest_since(connection, last.rollout, last.time_unix_ns)
    at = f"ramp of {last.rollout!r}: from {last.percent:g} % to {change.percent:g} %"
    if given is None:
        raise ConflictError(
            f"{at} needs a passing verdict that is newer than the step; none was posted since. "
            f"Run `draftgate gate {last.rollout}` on what arrived meanwhile"
        )
    if given.verdict.outcome is not Outcome.PASS:
        raise ConflictError(
            f"{at} needs a passing verdict; the newest one is {given.verdict.outcome}: "
            f"{given.verdict.summary}"
        )
    if given.id != change.verdict:
        raise ConflictError(
            f"{at} names the verdict {change.verdict or 'none'}; the newest is {given.id}: "
            "read it, and decide again"
        )


def _step(row: Row[Any]) -> RampStep:
    return RampStep(
        id=row.id,
        rollout=row.rollout,
        percent=row.percent,
        reason=row.reason,
        verdict=row.verdict,
        who=row.who,
        time_unix_ns=row.time_unix_ns,
    )
