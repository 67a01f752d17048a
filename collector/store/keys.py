"""API keys in the database."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, insert, or_, select, update

from collector.api_key import ApiKey, Scope
from collector.store.tables import api_key


def add(connection: Connection, key: ApiKey) -> None:
    """Store a new key."""
    connection.execute(
        insert(api_key).values(
            id=key.id,
            name=key.name,
            digest=key.digest,
            scopes=json.dumps(sorted(key.scopes)),
            project=key.project,
            rate_per_s=key.rate_per_s,
            created_unix_ns=key.created_unix_ns,
            expires_unix_ns=key.expires_unix_ns,
        )
    )


def newest_first(connection: Connection) -> tuple[ApiKey, ...]:
    """Return every key, including revoked and expired ones."""
    order = (api_key.c.created_unix_ns.desc(), api_key.c.id)
    return tuple(_key(row) for row in connection.execute(select(api_key).order_by(*order)))


def by_id(connection: Connection, id_: str) -> ApiKey | None:
    """Return the key with this id; None if there is none."""
    row = connection.execute(select(api_key).where(api_key.c.id == id_)).one_or_none()
    return _key(row) if row is not None else None


def revoke(connection: Connection, id_: str, now_unix_ns: int) -> None:
    """Mark the key as revoked; a key revoked before keeps its time."""
    connection.execute(
        update(api_key)
        .where(api_key.c.id == id_, api_key.c.revoked_unix_ns.is_(None))
        .values(revoked_unix_ns=now_unix_ns)
    )


def note_use(connection: Connection, used_unix_ns: Mapping[str, int]) -> None:
    """Store when keys were last used, by id, unless a later use is stored."""
    last = api_key.c.last_used_unix_ns
    for id_, unix_ns in used_unix_ns.items():
        connection.execute(
            update(api_key)
            .where(api_key.c.id == id_, or_(last.is_(None), last < unix_ns))
            .values(last_used_unix_ns=unix_ns)
        )


def _key(row: Row[Any]) -> ApiKey:  # Any: the columns' types
    scopes = frozenset(Scope(scope) for scope in json.loads(row.scopes))
    return ApiKey(**(row._asdict() | {"scopes": scopes}))
