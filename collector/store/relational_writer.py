"""Batches into one relational database, which holds all."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table, func, select

from collector.contract import Score
from collector.store import partitions, span_rows, tables
from collector.store.generation_rows import Row
from collector.store.rollups import deltas
from collector.store.rollups.state import Packed
from collector.store.span_rows import SpanRows
from collector.store.writer import Key, Writer, score_row

_TRACES_A_QUERY: Final = 500


class RelationalWriter(Writer):
    """Writes batches; the connection's transaction must exclude other writers."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._bulk = self._relational

    def _begin(self, spans: Sequence[SpanRows]) -> int:  # noqa: ARG002  # it needs not know them
        last: int = self._connection.scalar(select(func.max(tables.span.c.id))) or 0
        # Above all others, even if the clock goes back.
        first_id = max(last + 1, partitions.first_id_of(time.time()))
        partitions.ensure(self._connection, first_id)
        return first_id

    def _without_stored(self, generations: Sequence[Row]) -> Sequence[Row]:
        return generations  # a transaction that fails stores none

    def _kept(self, keys: Sequence[Key]) -> set[int]:
        ours = set(keys)
        key = tables.span_key.c
        found = select(key.trace_id, key.span_id, key.id)
        trace_ids = list(dict.fromkeys(trace_id for trace_id, _, _ in keys))
        kept: set[int] = set()
        for at in range(0, len(trace_ids), _TRACES_A_QUERY):
            some = key.trace_id.in_(trace_ids[at : at + _TRACES_A_QUERY])
            rows = self._connection.execute(found.where(some))
            kept.update(id_ for trace_id, span_id, id_ in rows if (trace_id, span_id, id_) in ours)
        return kept

    def _insert_resources(self, resources: Iterable[span_rows.ResourceRow]) -> None:
        rows = list(dict.fromkeys(resources))
        self._relational.insert_few_new(tables.resource, span_rows.ResourceRow._fields, rows)

    def _add_to_rollups(self, added: Sequence[deltas.Delta]) -> None:
        if not added:
            return
        ids = self._insert_series(delta.series for delta in added)
        self._bulk.insert(
            tables.rollup_delta,
            ("series_id", "start_unix_s", *Packed._fields),
            [(ids[delta.series], delta.start_unix_s, *delta.packed) for delta in added],
        )

    def _write_scores(self, scores: Sequence[Score]) -> None:
        first = (self._connection.scalar(select(func.max(tables.score.c.revision))) or 0) + 1
        rows = [score_row(score, revision) for revision, score in enumerate(scores, first)]
        self._upsert(tables.score, rows, kept="first_revision")

    def _replace(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        self._upsert(table, rows)

    def _upsert(
        self, table: Table, rows: Sequence[Mapping[str, Any]], *, kept: str | None = None
    ) -> None:
        """Insert rows in their order, each in the place of the one that has its key.

        A column that is `kept` stays what it first was.
        """
        insert = self._insert(table)
        key = [column.name for column in table.primary_key]
        replaced = {c.name: c for c in insert.excluded if c.name not in (*key, kept)}
        self._connection.execute(
            insert.on_conflict_do_update(index_elements=key, set_=replaced), rows
        )
