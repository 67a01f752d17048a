"""Join of engine spans to their generations on ClickHouse, a batch at a time.

ClickHouse changes a generation's row immediately, not in the transaction. If that happened before
the commit and the writer failed in between, the fields would be stored but never counted in the
rollups. So the transaction that adds them to the rollups replaces the waiting span by a note of the
join, and `finish` updates the generation after the commit. It may be repeated: the note contains
the values.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, Boolean, Double, Row, delete, insert, select

from collector.store.clickhouse.bulk import in_traces
from collector.store.clickhouse.connection import AnalyticsConnection
from collector.store.clickhouse.server import literal
from collector.store.engine_spans import (
    ADDED,
    CLIENT_COLUMNS,
    JOINED,
    ClientGeneration,
    EnrichedGeneration,
    TraceSpan,
    client_generation_of,
)
from collector.store.tables import engine_span as e
from collector.store.tables import generation as g

_IDS_A_QUERY: Final = 500
_KINDS: Final = {Double: "Float64", BigInteger: "Int64", Boolean: "Bool"}


class _Found(NamedTuple):
    """A waiting span and its generation."""

    waiting: Row[Any]
    client_id: int


def join(connection: AnalyticsConnection, trace_ids: Sequence[bytes]) -> list[EnrichedGeneration]:
    """Join waiting engine spans of these traces to their generations, if stored.

    Call `finish` after the commit.
    """
    finish(connection)  # otherwise a generation could take the same fields twice
    waiting = [
        row
        for at in range(0, len(trace_ids), _IDS_A_QUERY)
        for row in connection.execute(
            select(e).where(e.c.trace_id.in_(trace_ids[at : at + _IDS_A_QUERY])).order_by(e.c.id)
        )
    ]
    if not waiting:
        return []
    spans = _spans(connection, {row.trace_id for row in waiting})
    found = []
    for row in waiting:
        of_trace = spans[row.trace_id]
        if _is_half_promoted(row, of_trace):
            continue
        client_id = client_generation_of(of_trace, row.parent_span_id)
        if client_id is not None:
            found.append(_Found(row, client_id))
    return _joined(connection, found) if found else []


def finish(connection: AnalyticsConnection) -> int:
    """Update the generations of committed joins; return how many joins were finished."""
    joins = connection.execute(select(e).where(e.c.arrived_unix_s == JOINED).order_by(e.c.id)).all()
    noted_by: dict[str, dict[int, Any]] = {name: {} for name in ADDED}
    for row in joins:
        noted = json.loads(row.fields)
        for name, value in noted["added"].items():
            noted_by[name][noted["generation_id"]] = value
    changes = [_change(name, values) for name, values in noted_by.items() if values]
    if changes:
        ids = ", ".join(map(str, {id_ for values in noted_by.values() for id_ in values}))
        connection.clickhouse.alter(
            "generation", f"UPDATE {', '.join(changes)} WHERE id IN ({ids})"
        )
    _forget(connection, [row.id for row in joins])
    return len(joins)


def _change(name: str, values: Mapping[int, Any]) -> str:
    """Return the assignment of a column's new values, by generation id."""
    kind = _KINDS.get(type(g.c[name].type), "String")
    array = f"CAST([{', '.join(map(literal, values.values()))}], 'Array({kind})')"
    return f"{name} = transform(id, {list(values)}, {array}, {name})"


def _is_half_promoted(waiting: Row[Any], of_trace: Iterable[TraceSpan]) -> bool:
    """Return whether a waiting span is a generation already: a writer failed while promoting it."""
    return any(
        known.span_id == waiting.span_id and known.generation_id is not None for known in of_trace
    )


def _spans(
    connection: AnalyticsConnection, traces: Iterable[bytes]
) -> dict[bytes, list[TraceSpan]]:
    """Return the spans of each trace, and which of them are generations."""
    found: dict[bytes, list[TraceSpan]] = defaultdict(list)
    for some in in_traces(traces):
        rows = connection.rows(
            "SELECT k.trace_id, s.span_id, s.parent_span_id, g.id FROM "  # noqa: S608  # names are ours
            f"(SELECT trace_id, id FROM span_key WHERE {some}) AS k "
            f"JOIN (SELECT id, span_id, parent_span_id FROM span WHERE {some}) AS s ON s.id = k.id "
            f"LEFT JOIN (SELECT id FROM generation WHERE {some}) AS g ON g.id = k.id"
        )
        for trace_id, *known in rows:
            found[trace_id].append(TraceSpan(*known))
    return found


def _joined(connection: AnalyticsConnection, found: Sequence[_Found]) -> list[EnrichedGeneration]:
    clients = _clients(connection, {one.client_id for one in found})
    joined, noted = [], []
    for waiting, client_id in found:
        client = clients[client_id]
        added = client.add(json.loads(waiting.fields))
        joined.append(EnrichedGeneration(client.generation, added))
        if added:
            fields = json.dumps({"generation_id": client_id, "added": added})
            row = dict(zip(e.c.keys(), waiting, strict=True))
            noted.append(row | {"arrived_unix_s": JOINED, "fields": fields})
    _forget(connection, [one.waiting.id for one in found])
    if noted:
        connection.execute(insert(e), noted)
    return joined


def _forget(connection: AnalyticsConnection, ids: Sequence[int]) -> None:
    for at in range(0, len(ids), _IDS_A_QUERY):
        connection.execute(delete(e).where(e.c.id.in_(ids[at : at + _IDS_A_QUERY])))


def _clients(connection: AnalyticsConnection, ids: Iterable[int]) -> dict[int, ClientGeneration]:
    every = list(ids)
    columns = [g.c[name] for name in CLIENT_COLUMNS]
    return {
        row["id"]: ClientGeneration.of(row)
        for at in range(0, len(every), _IDS_A_QUERY)
        for row in connection.execute(
            select(g.c.id, *columns).where(g.c.id.in_(every[at : at + _IDS_A_QUERY]))
        ).mappings()
    }
