"""The outbox of notifications: written in the transaction of the change, sent afterwards.

Each target gets notifications in order, at least once. It has a position in the outbox, and a
collector claims the target for a limited time before sending, so that only one collector sends.
"""

import json
import secrets
from collections.abc import Collection
from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, update

from collector.contract import Notification, NotificationType, from_document, to_document
from collector.store.tables import notification as n
from collector.store.tables import notification_target as t

KEPT_S: Final = 7 * 86_400
"""How long a notification waits for its targets."""
LONGEST_PAUSE_S: Final = 300.0
"""Longest pause between two attempts."""


class Claim(NamedTuple):
    """A notification to be sent to one target, only by the holder of the claim."""

    target: str
    id: int
    notification: Notification
    attempts: int
    """Number of earlier attempts, which failed."""
    until_unix_ns: int


def new_id() -> str:
    """Return a unique id."""
    return secrets.token_hex(16)


def add(connection: Connection, made: Notification) -> None:
    """Add a notification to the outbox, and delete expired ones."""
    document = json.dumps(to_document(made), ensure_ascii=False, allow_nan=False)
    row = {"type": made.type.value, "time_unix_ns": made.time_unix_ns, "document": document}
    connection.execute(delete(n).where(n.c.time_unix_ns < made.time_unix_ns - int(KEPT_S * 1e9)))
    connection.execute(insert(n).values(**row))


def follow(connection: Connection, target: str) -> None:
    """Register a target at the end of the outbox, unless it is registered already."""
    if connection.scalar(select(t.c.name).where(t.c.name == target)) is None:
        last = connection.scalar(select(func.max(n.c.id))) or 0
        connection.execute(
            insert(t).values(name=target, sent_up_to=last, attempts=0, due_unix_ns=0)
        )


def is_due(
    connection: Connection, target: str, types: Collection[NotificationType], now_unix_ns: int
) -> bool:
    """Return whether a notification is due for the target."""
    return _next(connection, target, types, now_unix_ns) is not None


def claim(
    connection: Connection,
    target: str,
    types: Collection[NotificationType],
    now_unix_ns: int,
    *,
    until_unix_ns: int,
) -> Claim | None:
    """Claim the target's next due notification; the transaction must exclude other writers."""
    found = _next(connection, target, types, now_unix_ns)
    if found is not None:
        claimed = update(t).where(t.c.name == target).values(due_unix_ns=until_unix_ns)
        connection.execute(claimed)
        return found._replace(until_unix_ns=until_unix_ns)
    return None


def sent(connection: Connection, done: Claim) -> None:
    """Advance the target to its next notification, unless another claim was made meanwhile."""
    _settle(connection, done, sent_up_to=done.id, attempts=0, due_unix_ns=0)


def not_sent(connection: Connection, failed: Claim, *, again_unix_ns: int) -> None:
    """Schedule another attempt at a later time."""
    _settle(connection, failed, attempts=failed.attempts + 1, due_unix_ns=again_unix_ns)


def _settle(connection: Connection, claim: Claim, **values: int) -> None:
    ours = (t.c.name == claim.target) & (t.c.due_unix_ns == claim.until_unix_ns)
    connection.execute(update(t).where(ours).values(**values))


def _next(
    connection: Connection, target: str, types: Collection[NotificationType], now_unix_ns: int
) -> Claim | None:
    statement = (
        select(n.c.id, n.c.document, t.c.attempts, t.c.due_unix_ns)
        .where(t.c.name == target, n.c.id > t.c.sent_up_to, n.c.type.in_(types))
        .order_by(n.c.id)
        .limit(1)
    )
    row = connection.execute(statement).one_or_none()
    # A due time further ahead than any pause was written by a wrong clock.
    latest = now_unix_ns + int(LONGEST_PAUSE_S * 1e9)
    if row is None or now_unix_ns < row.due_unix_ns <= latest:
        return None
    made = from_document(Notification, json.loads(row.document))
    return Claim(target, row.id, made, row.attempts, row.due_unix_ns)
