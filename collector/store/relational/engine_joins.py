"""Join of waiting engine spans to the generations of their traces."""

import json
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, delete, select, update

from collector.store.engine_spans import (
    CLIENT_COLUMNS,
    ClientGeneration,
    EnrichedGeneration,
    TraceSpan,
    client_generation_of,
)
from collector.store.tables import engine_span as e
from collector.store.tables import generation as g
from collector.store.tables import span as s
from collector.store.tables import span_key as k

_KEYS_A_QUERY: Final = 500


def join(connection: Connection, trace_ids: Sequence[bytes]) -> list[EnrichedGeneration]:
    """Join waiting engine spans of these traces to their generations, if stored."""
    joined = []
    for at in range(0, len(trace_ids), _KEYS_A_QUERY):
        waiting = connection.execute(
            select(e).where(e.c.trace_id.in_(trace_ids[at : at + _KEYS_A_QUERY])).order_by(e.c.id)
        ).all()
        for row in waiting:
            client_id = _client_of(connection, row.trace_id, row.parent_span_id)
            if client_id is not None:
                joined.append(_add(connection, client_id, json.loads(row.fields)))
                connection.execute(delete(e).where(e.c.id == row.id))
    return joined


def _client_of(connection: Connection, trace_id: bytes, parent_span_id: bytes) -> int | None:
    spans = connection.execute(
        select(s.c.span_id, s.c.parent_span_id, g.c.id.label("generation_id"))
        .join_from(k, s, s.c.id == k.c.id)
        .outerjoin(g, g.c.id == s.c.id)
        .where(k.c.trace_id == trace_id)
    )
    return client_generation_of([TraceSpan(*row) for row in spans], parent_span_id)


def _add(connection: Connection, generation_id: int, fields: dict[str, Any]) -> EnrichedGeneration:
    columns = [g.c[name] for name in CLIENT_COLUMNS]
    row = connection.execute(select(*columns).where(g.c.id == generation_id)).mappings().one()
    client = ClientGeneration.of(row)
    added = client.add(fields)
    if added:
        connection.execute(update(g).where(g.c.id == generation_id).values(**added))
    return EnrichedGeneration(client.generation, added)
