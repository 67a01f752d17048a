"""Scores that name a response id instead of a span.

Evaluator and client export separately, so either may arrive first: a score waits here, for at most
`PATIENCE_S`, until a generation with its response id arrives. Among stored generations only the
newest are searched, because an index on response ids would slow every write down.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from collector.contract import ResponseScore, Score, from_document, to_document
from collector.store.tables import generation as g
from collector.store.tables import waiting_score as w

PATIENCE_S: Final = 86_400
LOOKED_THROUGH: Final = 50_000
"""How many of the newest stored generations are searched for a response id."""
_IDS_A_QUERY: Final = 500


class SpanKey(NamedTuple):
    """Trace id and span id of a generation."""

    trace_id: bytes
    span_id: bytes


def keep(connection: Connection, scores: Sequence[ResponseScore], now_unix_s: int) -> None:
    """Store scores that wait for their generation, and delete those that waited too long."""
    connection.execute(delete(w).where(w.c.arrived_unix_s < now_unix_s - PATIENCE_S))
    rows = [
        {
            "response_id": one.response_id,
            "arrived_unix_s": now_unix_s,
            "document": json.dumps(to_document(one.score), ensure_ascii=False),
        }
        for one in scores
    ]
    connection.execute(insert(w), rows)


def any_waits(connection: Connection) -> bool:
    """Return whether any score waits."""
    return connection.scalar(select(w.c.id).limit(1)) is not None


def stored_among(connection: Connection, response_ids: Sequence[str]) -> dict[str, SpanKey]:
    """Return, by response id, the span of its newest generation among the newest stored ones."""
    newest = select(g.c.id).order_by(g.c.id.desc()).limit(LOOKED_THROUGH).subquery()
    floor = connection.scalar(select(func.min(newest.c.id)))
    found: dict[str, SpanKey] = {}
    for at in range(0, len(response_ids) if floor is not None else 0, _IDS_A_QUERY):
        some = response_ids[at : at + _IDS_A_QUERY]
        statement = select(g.c.response_id, g.c.trace_id, g.c.span_id).where(
            g.c.id >= floor, g.c.response_id.in_(some)
        )
        for row in connection.execute(statement.order_by(g.c.id)):
            found[row.response_id] = SpanKey(row.trace_id, row.span_id)
    return found


def take(connection: Connection, answered: Mapping[str, SpanKey]) -> list[Score]:
    """Delete the scores that waited for these response ids and return them with their spans."""
    taken: list[Score] = []
    ids = list(answered)
    for at in range(0, len(ids), _IDS_A_QUERY):
        waited = w.c.response_id.in_(ids[at : at + _IDS_A_QUERY])
        rows = connection.execute(select(w).where(waited).order_by(w.c.id)).all()
        if not rows:
            continue
        connection.execute(delete(w).where(w.c.id.in_([row.id for row in rows])))
        for row in rows:
            judged = answered[row.response_id]
            score = from_document(Score, json.loads(row.document))
            taken.append(
                replace(score, trace_id=judged.trace_id.hex(), span_id=judged.span_id.hex())
            )
    return taken
