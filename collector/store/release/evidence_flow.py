"""Which served rollouts' candidates are heard of, and the notifications that they stopped."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, delete, func, insert, select, update

from collector.contract import Arm, Notification, NotificationType, Switch
from collector.store import notifications
from collector.store.release import ramps, rollout_states, switches
from collector.store.tables import evidence_flow as f
from collector.store.tables import generation as g

_MOST_ROLLOUTS = 200


def served(connection: Connection) -> frozenset[str]:
    """Return the rollouts whose candidate is to answer, of the 200 that were decided on last.

    The switch is on, or was never set beside a ramp; a ramp, if any, is above 0 %.
    """
    names = rollout_states.newest(connection, at_most=_MOST_ROLLOUTS).names
    turned = {name: one.state for name, one in switches.newest_of_each(connection, names).items()}
    shares = {name: one.percent for name, one in ramps.newest_of_each(connection, names).items()}
    return frozenset(
        name
        for name in turned.keys() | shares.keys()
        if turned.get(name, Switch.ON) is Switch.ON and shares.get(name, 100) > 0
    )


def stored(connection: Connection) -> dict[str, bool]:
    """Return, for each rollout that is followed, whether its evidence stopped."""
    return {row.rollout: row.stopped for row in connection.execute(select(f))}


def newest_id(connection: Connection) -> int:
    """Return the id of the newest generation, or 0."""
    return connection.scalar(select(func.max(g.c.id))) or 0


def heard(connection: Connection, rollouts: Collection[str], after: int) -> frozenset[str]:
    """Return the rollouts with a candidate's generation above an id."""
    ours = (g.c.id > after) & (g.c.arm == Arm.CANDIDATE.value) & g.c.rollout.in_(rollouts)
    return frozenset(connection.scalars(select(g.c.rollout).where(ours).distinct()))


def follow(connection: Connection, rollout: str) -> None:
    """Follow a rollout whose candidate was heard of for the first time."""
    connection.execute(insert(f).values(rollout=rollout, stopped=False))


def turn(
    connection: Connection, rollout: str, *, stopped: bool, summary: str, unix_ns: int
) -> None:
    """Store and tell that a rollout's evidence stopped, or flows again."""
    connection.execute(update(f).where(f.c.rollout == rollout).values(stopped=stopped))
    states = ("flowing", "stopped") if stopped else ("stopped", "flowing")
    _tell(connection, rollout, states, summary, unix_ns)


def forget(connection: Connection, followed: Mapping[str, bool], unix_ns: int) -> None:
    """Follow rollouts no longer, because they are not served; a silence that was told ends."""
    connection.execute(delete(f).where(f.c.rollout.in_(followed)))
    for rollout in sorted(name for name, stopped in followed.items() if stopped):
        words = "its candidate is no longer to answer"
        _tell(connection, rollout, ("stopped", "not served"), words, unix_ns)


def _tell(
    connection: Connection, rollout: str, states: tuple[str, str], summary: str, unix_ns: int
) -> None:
    made = Notification(
        id=notifications.new_id(),
        type=NotificationType.EVIDENCE_STOPPED,
        rollout=rollout,
        time_unix_ns=unix_ns,
        before=states[0],
        after=states[1],
        summary=summary,
    )
    notifications.add(connection, made)
