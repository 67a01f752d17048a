"""Writes of batches into one relational database with all tables."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Column, Connection, Table, delete, func, select

from collector.contract import Score
from collector.store import days, span_rows, tables
from collector.store.bulk import RelationalBulk
from collector.store.engine_spans import EnrichedGeneration
from collector.store.generation_rows import Row
from collector.store.reader import StoreConnection
from collector.store.relational import engine_joins, rollups
from collector.store.rollups import deltas
from collector.store.rollups.state import Packed
from collector.store.span_rows import SpanRows
from collector.store.writer import Key, Writer, score_row

_TRACES_A_QUERY: Final = 500
_DAY_S: Final = 86_400


class RelationalWriter(Writer):
    """Writes batches; the connection's transaction must exclude other writers."""

    def __init__(
        self,
        connection: StoreConnection,
        bulk: RelationalBulk,
        insert_into: Callable[[Table], Any],  # Any: the inserts of two dialects
    ) -> None:
        super().__init__(connection, bulk, bulk)
        self._insert_into = insert_into

    def fold(self, *, at_most: int) -> int:
        """Fold pending rollup deltas into minutes and hours; return how many were folded."""
        return rollups.fold(self.connection, at_most=at_most)

    def any_joined(self) -> bool:
        """Return False: a join is complete when its transaction commits."""
        return False

    def finish_joins(self) -> int:
        """Return 0: see `any_joined`."""
        return 0

    def end_of_piece(self, floor: int, before: int, at_most: int) -> int:
        """Return the end of the next chunk of ids to delete from `floor`; `before` if none left."""
        last = last_of(self.connection, tables.span.c.id, floor, before, at_most)
        return before if last is None else last + 1

    def delete_minutes(self, before_unix_s: int, at_most: int) -> int:
        """Delete rollup minutes before a time, one day of one series at a time."""
        m = tables.rollup_minute.c
        done = 0
        for id_ in self.connection.scalars(select(tables.series.c.id)).all():
            oldest = select(func.min(m.start_unix_s)).where(m.series_id == id_)
            first = self.connection.scalar(oldest)
            if first is None or first >= before_unix_s:
                continue
            end = min(first + _DAY_S, before_unix_s)
            old = delete(tables.rollup_minute).where(m.series_id == id_, m.start_unix_s < end)
            done += self.connection.execute(old).rowcount
            if done >= at_most:
                break
        return done

    def _join(self, trace_ids: Sequence[bytes]) -> list[EnrichedGeneration]:
        return engine_joins.join(self.connection, trace_ids)

    def _begin(self, spans: Sequence[SpanRows]) -> int:  # noqa: ARG002  # not needed here
        last: int = self.connection.scalar(select(func.max(tables.span.c.id))) or 0
        # Above all stored ids, even if the clock was set back.
        return max(last + 1, days.first_id_of(time.time()))

    def _without_stored(self, generations: Sequence[Row]) -> Sequence[Row]:
        return generations  # a failed transaction stores none

    def _kept(self, keys: Sequence[Key]) -> set[int]:
        ours = set(keys)
        key = tables.span_key.c
        found = select(key.trace_id, key.span_id, key.id)
        trace_ids = list(dict.fromkeys(trace_id for trace_id, _, _ in keys))
        kept: set[int] = set()
        for at in range(0, len(trace_ids), _TRACES_A_QUERY):
            some = key.trace_id.in_(trace_ids[at : at + _TRACES_A_QUERY])
            rows = self.connection.execute(found.where(some))
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
        first = (self.connection.scalar(select(func.max(tables.score.c.revision))) or 0) + 1
        rows = [score_row(score, revision) for revision, score in enumerate(scores, first)]
        self._upsert(tables.score, rows, kept="first_revision")

    def _replace(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        self._upsert(table, rows)

    def _upsert(
        self, table: Table, rows: Sequence[Mapping[str, Any]], *, kept: str | None = None
    ) -> None:
        """Insert rows in order, each replacing the row with the same key.

        The column `kept` keeps its first value.
        """
        insert = self._insert_into(table)
        key = [column.name for column in table.primary_key]
        replaced = {c.name: c for c in insert.excluded if c.name not in (*key, kept)}
        self.connection.execute(
            insert.on_conflict_do_update(index_elements=key, set_=replaced), rows
        )


def last_of(
    connection: Connection, id_: Column[int], floor: int, before: int, at_most: int
) -> int | None:
    """Return the last of the first `at_most` ids in [floor, before); None if there are none."""
    piece = select(id_).where(id_ >= floor, id_ < before).order_by(id_).limit(at_most)
    ids = connection.scalars(piece).all()
    return ids[-1] if ids else None
