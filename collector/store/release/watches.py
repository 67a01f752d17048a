"""Watches: one document per rollout and policy, replaced with optimistic locking."""

import dataclasses
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select, update

from collector.contract import (
    AcceptanceWatch,
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

    A watch that reached a decision, or whose acceptance drifted, is put in the outbox. Raises
    `ConflictError` unless the stored version is the one that the update continues.
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


def acceptance_drifts(
    connection: Connection, rollouts: Collection[str]
) -> dict[str, tuple[AcceptanceWatch, ...]]:
    """Return, by rollout, the cohorts whose acceptance its last updated watch compares."""
    found: dict[str, tuple[AcceptanceWatch, ...]] = {}
    for rollout in rollouts:
        newest = _documents(rollout).order_by(w.c.updated_unix_ns.desc()).limit(1)
        document = connection.scalar(newest)
        if document is not None:
            compared = [one for one in _acceptance(json.loads(document)) if one.fall is not None]
            found[rollout] = tuple(compared)
    return found


def _notify(connection: Connection, watch: Watch, unix_ns: int) -> None:
    """Tell of a decision, and of acceptance that drifted, before the state is replaced."""
    drifted = any(one.drifted for one in watch.acceptance)
    if watch.outcome is Outcome.INCONCLUSIVE and not drifted and not watch.epoch:
        return  # which most are: the document before is not read for them
    document = connection.scalar(
        _documents(watch.rollout).where(w.c.policy_hash == watch.policy_hash)
    )
    before = {} if document is None else json.loads(document)
    made = Notification(
        id=notifications.new_id(),
        type=NotificationType.WATCH_DECIDED,
        rollout=watch.rollout,
        time_unix_ns=unix_ns,
        before=before.get("outcome"),
        after=watch.outcome.value,
        summary=watch.summary,
        policy_name=watch.policy_name,
        policy_hash=watch.policy_hash,
    )
    if watch.outcome is not Outcome.INCONCLUSIVE and made.before != made.after:
        notifications.add(connection, made)
    for one in _drifts(made, _acceptance(before), watch.acceptance):
        notifications.add(connection, one)


def _drifts(
    like: Notification, before: Iterable[AcceptanceWatch], after: Iterable[AcceptanceWatch]
) -> Iterator[Notification]:
    """Yield a notification for each cohort whose alarm is raised, or reset."""
    was, now = ({one.cohort: one for one in some if one.drifted} for some in (before, after))
    for cohort in [*now, *(c for c in was if c not in now)]:
        if cohort in was and cohort in now:
            continue
        fell = cohort in now
        yield dataclasses.replace(
            like,
            id=notifications.new_id(),
            type=NotificationType.ACCEPTANCE_DRIFTED,
            before=None if fell else "fell",
            after="fell" if fell else "reset",
            summary=now[cohort].message if fell else "acceptance is watched anew",
            cohort=cohort,
        )


def _documents(rollout: str) -> Select[str]:
    return select(w.c.document).where(w.c.rollout == rollout)


def _acceptance(document: Mapping[str, Any]) -> tuple[AcceptanceWatch, ...]:
    """Return the alarms in a stored watch, without reading the rest."""
    return tuple(from_document(AcceptanceWatch, one) for one in document.get("acceptance", ()))


def _stored(row: Row[Any]) -> StoredWatch:
    return StoredWatch(
        version=row.version,
        updated_unix_ns=row.updated_unix_ns,
        watch=from_document(Watch, json.loads(row.document)),
        key_id=row.key_id,
    )
