"""Verdict ids, and reads of verdicts."""

import hashlib
import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row, func, select

from collector.contract import StoredVerdict, Verdict, from_document, to_document
from collector.store import rollouts
from collector.store.tables import verdict as v


def verdict_id(verdict: Verdict) -> str:
    """Return the SHA-256 of the verdict's canonical document: keys sorted, no spaces, UTF-8."""
    canonical = json.dumps(
        to_document(verdict),
        sort_keys=True,
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    )
    return hashlib.sha256(canonical.encode()).hexdigest()


def by_id(connection: Connection, id_: str) -> StoredVerdict:
    """Return the stored verdict with this id."""
    return _stored(connection.execute(select(v).where(v.c.id == id_)).one())


def newest(connection: Connection, rollout: str | None, *, limit: int) -> tuple[StoredVerdict, ...]:
    """Return the latest verdicts, of one rollout or of all, newest first.

    Raises `NotFoundError` for a rollout that has neither a verdict nor a generation.
    """
    statement = select(v).order_by(v.c.posted_unix_ns.desc(), v.c.id).limit(limit)
    if rollout is not None:
        statement = statement.where(v.c.rollout == rollout)
    found = tuple(_stored(row) for row in connection.execute(statement))
    if rollout is not None and not found:
        rollouts.require(connection, rollout)
    return found


def newest_ids(connection: Connection, rollouts: Collection[str]) -> dict[str, str]:
    """Return the id of the latest verdict of each of these rollouts that has any."""
    last = (
        select(v.c.rollout, func.max(v.c.posted_unix_ns).label("posted_unix_ns"))
        .where(v.c.rollout.in_(rollouts))
        .group_by(v.c.rollout)
        .subquery()
    )
    statement = (
        select(v.c.rollout, func.min(v.c.id).label("id"))
        .join(last, (v.c.rollout == last.c.rollout) & (v.c.posted_unix_ns == last.c.posted_unix_ns))
        .group_by(v.c.rollout)
    )
    return {row.rollout: row.id for row in connection.execute(statement)}


def newest_since(
    connection: Connection, rollout: str, unix_ns: int, *, policy_hash: str
) -> StoredVerdict | None:
    """Return the newest verdict under the policy that may move a ramp, posted after `unix_ns`."""
    statement = (
        select(v)
        .where(v.c.rollout == rollout, v.c.posted_unix_ns > unix_ns)
        .order_by(v.c.posted_unix_ns.desc(), v.c.id)
    )
    posted = (_stored(row) for row in connection.execute(statement))
    heeded = (one for one in posted if one.verdict.moves_ramp)
    return next((one for one in heeded if one.verdict.policy_hash == policy_hash), None)


def of_rollout(connection: Connection, rollout: str) -> tuple[StoredVerdict, ...]:
    """Return all of the rollout's verdicts, oldest first."""
    statement = select(v).where(v.c.rollout == rollout).order_by(v.c.posted_unix_ns, v.c.id)
    return tuple(_stored(row) for row in connection.execute(statement))


def _stored(row: Row[Any]) -> StoredVerdict:
    return StoredVerdict(
        id=row.id,
        posted_unix_ns=row.posted_unix_ns,
        verdict=from_document(Verdict, json.loads(row.document)),
        who=row.who,
        key_id=row.key_id,
    )
