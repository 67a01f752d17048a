"""Watches: one document per rollout and policy, replaced with optimistic locking."""

import json
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from collector.contract import StoredWatch, Watch, WatchUpdate, from_document, to_document
from collector.errors import ConflictError
from collector.store.tables import watch as w


def of_rollout(connection: Connection, rollout: str) -> tuple[StoredWatch, ...]:
    """Return the rollout's watches, one per policy, the last updated first."""
    statement = select(w).where(w.c.rollout == rollout).order_by(w.c.updated_unix_ns.desc())
    return tuple(_stored(row) for row in connection.execute(statement))


def replace(
    connection: Connection, given: WatchUpdate, unix_ns: int, *, key_id: str | None
) -> StoredWatch:
    """Store the next state of a watch; the transaction must exclude other writers.

    Raises `ConflictError` unless the stored version is the one that the update continues.
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
    change = update(w).where(is_ours) if found else insert(w)
    connection.execute(change.values(**row))
    return StoredWatch(version=found + 1, updated_unix_ns=unix_ns, watch=watch, key_id=key_id)


def _stored(row: Row[Any]) -> StoredWatch:
    return StoredWatch(
        version=row.version,
        updated_unix_ns=row.updated_unix_ns,
        watch=from_document(Watch, json.loads(row.document)),
        key_id=row.key_id,
    )
