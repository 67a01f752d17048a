"""Batches into ClickHouse, with what of them is relational beside it.

Under the relational database's lock, which orders writers as it does elsewhere. The mark of what
counts is moved in that transaction, so that a batch is there whole or not at all.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Table, select

from collector.contract import Score
from collector.store import partitions, progress, span_rows, tables
from collector.store.clickhouse import marks, rollups
from collector.store.clickhouse.bulk import ClickHouseBulk, in_traces
from collector.store.clickhouse.connection import AnalyticsConnection
from collector.store.generation_rows import Row
from collector.store.rollups import deltas
from collector.store.span_rows import SpanRows
from collector.store.writer import Key, Writer, score_row

_SCORE_KEY: Final = ("trace_id", "span_id", "metric", "evaluator", "version")
_IDS_A_QUERY: Final = 1000


class ClickHouseWriter(Writer):
    """Writes batches; the connection's transaction must exclude other writers."""

    _connection: AnalyticsConnection

    def __init__(self, connection: AnalyticsConnection) -> None:
        super().__init__(connection)
        self._clickhouse = connection.clickhouse
        self._bulk = ClickHouseBulk(connection)
        self._first = 0

    def _begin(self, spans: Sequence[SpanRows]) -> int:
        """Take ids above all that were ever tried, and move the mark behind them."""
        committed = self._connection.marks.committed
        newest = self._clickhouse.newest_id(committed) or 0
        tried = max(newest, self._clickhouse.last_tried_id)
        if tried > committed:
            marks.leave_out(self._connection, marks.Hole(committed + 1, tried))
        self._first = max(committed + 1, tried + 1, partitions.first_id_of(time.time()))
        last = span_rows.last_id(spans, self._first)
        self._clickhouse.last_tried_id = last
        progress.reach(self._connection, marks.COMMITTED, last)
        self._connection.forget_marks()
        return self._first

    def _kept(self, keys: Sequence[Key]) -> set[int]:
        ours = set(keys)
        return {
            row[2]
            for some in in_traces(trace_id for trace_id, _, _ in keys)
            for row in self._connection.rows(
                f"SELECT trace_id, span_id, id FROM span_key WHERE {some}"  # noqa: S608  # ours
            )
            if row in ours
        }

    def _without_stored(self, generations: Sequence[Row]) -> Sequence[Row]:
        """Leave out none of this batch, but of spans that are there already."""
        if not self._first:  # they are all of such spans
            self._begin(())
        older = [row["id"] for row in generations if row["id"] < self._first]
        g = tables.generation.c
        known = {
            id_
            for at in range(0, len(older), _IDS_A_QUERY)
            for id_ in self._connection.scalars(
                select(g.id).where(g.id.in_(older[at : at + _IDS_A_QUERY]))
            )
        }
        return [row for row in generations if row["id"] not in known]

    def _insert_resources(self, resources: Iterable[span_rows.ResourceRow]) -> None:
        known = self._clickhouse.known_resources
        new = [row for row in dict.fromkeys(resources) if row.id not in known]
        if new:
            self._bulk.insert(tables.resource, span_rows.ResourceRow._fields, new)
            known.update(row.id for row in new)

    def _add_to_rollups(self, added: Sequence[deltas.Delta]) -> None:
        if added:
            self._insert_series(delta.series for delta in added)
            rollups.add(self._connection, self._first, added)

    def _write_scores(self, scores: Sequence[Score]) -> None:
        first = self._newest_revision(tables.score) + 1
        rows = {}
        for revision, score in enumerate(scores, first):
            row = score_row(score, revision)
            rows[tuple(row[name] for name in _SCORE_KEY)] = row
        known = self._first_revisions({key[0] for key in rows})
        for key, row in rows.items():
            row["first_revision"] = known.get(key, row["revision"])
        self._bulk.insert_sparse(tables.score, list(rows.values()))

    def _first_revisions(self, trace_ids: Iterable[bytes]) -> dict[tuple[Any, ...], int]:
        """Return the revision of the first post of what is scored in the traces, by its key."""
        columns = ", ".join((*_SCORE_KEY, "first_revision"))
        return {
            (*key[:2], *(name.decode() for name in key[2:])): first
            for some in in_traces(trace_ids)
            for *key, first in self._connection.rows(f"SELECT {columns} FROM score WHERE {some}")  # noqa: S608  # names are ours
        }

    def _replace(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        first = self._newest_revision(table) + 1
        key = [column.name for column in table.primary_key]
        last = {tuple(row[name] for name in key): row for row in rows}
        revised = [
            {**row, "revision": revision} for revision, row in enumerate(last.values(), first)
        ]
        self._bulk.insert_sparse(table, revised)

    def _newest_revision(self, table: Table) -> int:
        newest = self._clickhouse.query(f"SELECT max(revision) FROM {table.name}", {"final": 0})  # noqa: S608  # ours
        return newest.column(0)[0].as_py() or 0
