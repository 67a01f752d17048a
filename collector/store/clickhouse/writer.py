"""Writes of batches into ClickHouse and the relational database beside it.

The relational database's lock serializes writers. Its transaction also moves the mark that makes
ClickHouse's rows visible, so that a batch is visible whole or not at all.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Table, select

from collector.contract import Score
from collector.store import days, progress, span_rows, tables
from collector.store.bulk import RelationalBulk
from collector.store.clickhouse import engine_joins, retention, rollups, watermarks
from collector.store.clickhouse.bulk import ClickHouseBulk, in_traces
from collector.store.clickhouse.connection import AnalyticsConnection
from collector.store.engine_spans import JOINED, EnrichedGeneration
from collector.store.generation_rows import Row
from collector.store.rollups import deltas
from collector.store.span_rows import SpanRows
from collector.store.writer import Key, Writer, score_row

_SCORE_KEY: Final = ("trace_id", "span_id", "metric", "evaluator", "version")
_IDS_A_QUERY: Final = 1000


class ClickHouseWriter(Writer):
    """Writes batches; the connection's transaction must exclude other writers."""

    connection: AnalyticsConnection

    def __init__(self, connection: AnalyticsConnection, relational: RelationalBulk) -> None:
        super().__init__(connection, ClickHouseBulk(connection), relational)
        self._clickhouse = connection.clickhouse
        self._first = 0

    def fold(self, *, at_most: int) -> int:  # noqa: ARG002  # one statement folds all
        """Fold all pending rollup deltas into minutes and hours; return how many were folded."""
        return rollups.fold(self.connection)

    def any_joined(self) -> bool:
        """Return whether there is work for `finish_joins`."""
        e = tables.engine_span.c
        found = select(e.id).where(e.arrived_unix_s == JOINED).limit(1)
        return self.connection.scalar(found) is not None

    def finish_joins(self) -> int:
        """Update the generations of committed joins; return how many joins were finished."""
        return engine_joins.finish(self.connection)

    def delete_content(self, before: int, at_most: int) -> int:  # noqa: ARG002  # a day is quick
        """Drop the days of texts that end at or before the id; return how many were dropped."""
        return retention.drop_days(self.connection, tables.content.name, before)

    def drop_days(self, before: int) -> int:
        """Drop all days that end at or before the id; return how many were dropped."""
        names = [table.name for table in (tables.span_key, *days.BY_DAY)]
        return sum(retention.drop_days(self.connection, name, before) for name in names)

    def end_of_piece(self, floor: int, before: int, at_most: int) -> int:  # noqa: ARG002  # one piece
        """Return `before`: all days are deleted as one chunk."""
        return before

    def forget_spans(self, floor: int, end: int) -> int:  # noqa: ARG002  # none are below the floor
        """Delete scores and feedback of spans before `end`; the days are dropped afterwards."""
        retention.delete_judgements(self.connection, end)
        return 0

    def delete_minutes(self, before_unix_s: int, at_most: int) -> int:  # noqa: ARG002  # all at once
        """Delete rollup minutes before a time; return how many rows were deleted."""
        return retention.delete_minutes(self.connection, before_unix_s)

    def _join(self, trace_ids: Sequence[bytes]) -> list[EnrichedGeneration]:
        return engine_joins.join(self.connection, trace_ids)

    def _begin(self, spans: Sequence[SpanRows]) -> int:
        """Assign ids above all that were ever written, and move the mark to the last of them."""
        committed = self.connection.watermarks.committed
        newest = self._clickhouse.newest_id(committed) or 0
        tried = max(newest, self._clickhouse.last_tried_id)
        if tried > committed:
            watermarks.add_hole(self.connection, watermarks.Hole(committed + 1, tried))
        self._first = max(committed + 1, tried + 1, days.first_id_of(time.time()))
        last = span_rows.last_id(spans, self._first)
        self._clickhouse.last_tried_id = last
        progress.reach(self.connection, watermarks.COMMITTED, last)
        self.connection.forget_watermarks()
        return self._first

    def _kept(self, keys: Sequence[Key]) -> set[int]:
        ours = set(keys)
        return {
            row[2]
            for some in in_traces(trace_id for trace_id, _, _ in keys)
            for row in self.connection.rows(
                f"SELECT trace_id, span_id, id FROM span_key WHERE {some}"  # noqa: S608  # ours
            )
            if row in ours
        }

    def _without_stored(self, generations: Sequence[Row]) -> Sequence[Row]:
        """Return the generations without stored ones, which only older spans can have."""
        if not self._first:  # all of them are of older spans
            self._begin(())
        older = [row["id"] for row in generations if row["id"] < self._first]
        g = tables.generation.c
        known = {
            id_
            for at in range(0, len(older), _IDS_A_QUERY)
            for id_ in self.connection.scalars(
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
            rollups.add(self.connection, self._first, added)

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
        """Return the revisions of first posts in these traces, by the score's key."""
        columns = ", ".join((*_SCORE_KEY, "first_revision"))
        return {
            (*key[:2], *(name.decode() for name in key[2:])): first
            for some in in_traces(trace_ids)
            for *key, first in self.connection.rows(f"SELECT {columns} FROM score WHERE {some}")  # noqa: S608  # names are ours
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
