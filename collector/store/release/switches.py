"""Switches of rollouts: an audit log whose newest event is the current state."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select

from collector.contract import Notification, NotificationType, Switch, SwitchChange, SwitchState
from collector.store import notifications
from collector.store.tables import switch_event as e


def add(
    connection: Connection, rollout: str, change: SwitchChange, *, who: str, unix_ns: int
) -> SwitchState:
    """Store an event and return it; the transaction must exclude other writers.

    A state that differs from the one before is put in the outbox of notifications.
    """
    last = next(iter(newest(connection, rollout, limit=1)), None)
    if last is None or last.state is not change.state:
        notifications.add(
            connection,
            Notification(
                id=notifications.new_id(),
                type=NotificationType.SWITCH_TURNED,
                rollout=rollout,
                time_unix_ns=unix_ns,
                before=None if last is None else last.state.value,
                after=change.state.value,
                summary=change.reason,
                who=who,
            ),
        )
    added = connection.execute(
        insert(e)
        .values(
            rollout=rollout,
            state=change.state.value,
            reason=change.reason,
            who=who,
            time_unix_ns=unix_ns,
        )
        .returning(e)
    )
    return _event(added.one())


def newest(connection: Connection, rollout: str, *, limit: int) -> tuple[SwitchState, ...]:
    """Return the rollout's latest events, newest first."""
    statement = select(e).where(e.c.rollout == rollout).order_by(e.c.id.desc()).limit(limit)
    return tuple(_event(row) for row in connection.execute(statement))


def newest_of_each(connection: Connection, rollouts: Collection[str]) -> dict[str, SwitchState]:
    """Return the latest event of each of these rollouts that has any."""
    last = select(func.max(e.c.id)).where(e.c.rollout.in_(rollouts)).group_by(e.c.rollout)
    events = map(_event, connection.execute(select(e).where(e.c.id.in_(last))))
    return {event.rollout: event for event in events}


def changed_since(connection: Connection, id_: int) -> dict[str, int]:
    """Return, by rollout, the id of the newest event with an id above this one."""
    statement = (
        select(e.c.rollout, func.max(e.c.id).label("newest"))
        .where(e.c.id > id_)
        .group_by(e.c.rollout)
    )
    return {row.rollout: row.newest for row in connection.execute(statement)}


def _event(row: Row[Any]) -> SwitchState:
    return SwitchState(**(row._asdict() | {"state": Switch(row.state)}))
