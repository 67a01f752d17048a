"""Engines' spans joined to their generations on ClickHouse, a batch at a time."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Row, delete, select

from collector.store.clickhouse.bulk import in_traces
from collector.store.clickhouse.connection import AnalyticsConnection
from collector.store.engine_spans import ADDED, CLIENT_COLUMNS, Client, Joined, Known, client_of
from collector.store.tables import engine_span as e
from collector.store.tables import generation as g

_IDS_A_QUERY: Final = 500


class _Found(NamedTuple):
    """A waiting span and its generation."""

    waiting: Row[Any]
    client_id: int


def join(connection: AnalyticsConnection, trace_ids: Sequence[bytes]) -> list[Joined]:
    """Join the engine's spans that wait in these traces to their generations, where those are."""
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
        client_id = client_of(spans[row.trace_id], row.parent_span_id)
        if client_id is not None:
            found.append(_Found(row, client_id))
    return _joined(connection, found) if found else []


def _spans(connection: AnalyticsConnection, traces: Iterable[bytes]) -> dict[bytes, list[Known]]:
    """Return the spans of the traces, and which are generations."""
    found: dict[bytes, list[Known]] = defaultdict(list)
    for some in in_traces(traces):
        rows = connection.rows(
            "SELECT k.trace_id, s.span_id, s.parent_span_id, g.id FROM "  # noqa: S608  # names are ours
            f"(SELECT trace_id, id FROM span_key WHERE {some}) AS k "
            f"JOIN (SELECT id, span_id, parent_span_id FROM span WHERE {some}) AS s ON s.id = k.id "
            f"LEFT JOIN (SELECT id FROM generation WHERE {some}) AS g ON g.id = k.id"
        )
        for trace_id, *known in rows:
            found[trace_id].append(Known(*known))
    return found


def _joined(connection: AnalyticsConnection, found: Sequence[_Found]) -> list[Joined]:
    clients = _clients(connection, {one.client_id for one in found})
    joined = []
    added_to: dict[str, dict[int, float]] = {name: {} for name in ADDED}
    for waiting, client_id in found:
        client = clients[client_id]
        added = client.add(json.loads(waiting.fields))
        for name, value in added.items():
            added_to[name][client_id] = value
        joined.append(Joined(client.generation, added))
    changes = [
        f"{name} = transform(id, {list(values)}, {list(values.values())}, {name})"
        for name, values in added_to.items()
        if values
    ]
    if changes:
        ids = ", ".join(map(str, {id_ for values in added_to.values() for id_ in values}))
        connection.clickhouse.alter(
            "generation", f"UPDATE {', '.join(changes)} WHERE id IN ({ids})"
        )
    ids_done = [one.waiting.id for one in found]
    for at in range(0, len(ids_done), _IDS_A_QUERY):
        connection.execute(delete(e).where(e.c.id.in_(ids_done[at : at + _IDS_A_QUERY])))
    return joined


def _clients(connection: AnalyticsConnection, ids: Iterable[int]) -> dict[int, Client]:
    every = list(ids)
    columns = [g.c[name] for name in CLIENT_COLUMNS]
    return {
        row["id"]: Client.of(row)
        for at in range(0, len(every), _IDS_A_QUERY)
        for row in connection.execute(
            select(g.c.id, *columns).where(g.c.id.in_(every[at : at + _IDS_A_QUERY]))
        ).mappings()
    }
