"""Watches: one document per rollout and policy, replaced with optimistic locking."""

import json
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from collector.contract import (
    Notification,
    NotificationType,
    Outcome,
    StoredWatch,
    Watch,
    WatchUpdate,
    from_document,
    to_document,
)
from collector.errors import ConflictError
from collector.store import notifications
from collector.store.tables import watch as w


def of_rollout(connection: Connection, rollout: str) -> tuple[StoredWatch, ...]:
    """Return the rollout's watches, one per policy, the last updated first."""
    statement = select(w).where(w.c.rollout == rollout).order_by(w.c.updated_unix_ns.desc())
    return tuple(_stored(row) for row in connection.execute(statement))


def replace(
    connection: Connection, given: WatchUpdate, unix_ns: int, *, key_id: str | None
) -> StoredWatch:
    """Store the next state of a watch; the transaction must exclude other writers.

    A watch that reached a decision is put in the outbox of notifications. Raises `ConflictError`
    unless the stored version is the one that the update continues.
    """
    watch = given.watch
    is_ours = (w.c.rollout == watch.rollout) & (w.c.policy_hash == watch.policy_hash)
    found = connection.scalar(select(w.c.version).where(is_ours)) or 0
    if found != given.continues:
        raise ConflictError(
            f"watch of {watch.rollout!r}: wanted to continue version {given.continues}, but "
            f"{found} is stored: another watcher went on; read its state and go on from there"
        )
    row = {
        "rollout": watch.rollout,
        "policy_hash": watch.policy_hash,
        "version": found + 1,
        "updated_unix_ns": unix_ns,
        "document": json.dumps(to_document(watch), ensure_ascii=False, allow_nan=False),
        "key_id": key_id,
    }
    _notify(connection, watch, unix_ns)
    change = update(w).where(is_ours) if found else insert(w)
    connection.execute(change.values(**row))
    return StoredWatch(version=found + 1, updated_unix_ns=unix_ns, watch=watch, key_id=key_id)


def _notify(connection: Connection, watch: Watch, unix_ns: int) -> None:
    """Tell of a watch that reaches a decision, before its state is replaced."""
    if watch.outcome is Outcome.INCONCLUSIVE:
        return  # which most are: the document before is not read for them
    is_ours = (w.c.rollout == watch.rollout) & (w.c.policy_hash == watch.policy_hash)
    document = connection.scalar(select(w.c.document).where(is_ours))
    before = None if document is None else str(json.loads(document)["outcome"])
    if before == watch.outcome.value:
        return
    made = Notification(
        id=notifications.new_id(),
        type=NotificationType.WATCH_DECIDED,
        rollout=watch.rollout,
        time_unix_ns=unix_ns,
        before=before,
        after=watch.outcome.value,
        summary=watch.summary,
        policy_name=watch.policy_name,
        policy_hash=watch.policy_hash,
    )
    notifications.add(connection, made)


def _stored(row: Row[Any]) -> StoredWatch:
    return StoredWatch(
        version=row.version,
        updated_unix_ns=row.updated_unix_ns,
        watch=from_document(Watch, json.loads(row.document)),
        key_id=row.key_id,
    )
