"""Reads of ClickHouse and of the relational database beside it."""

from collections.abc import Generator, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Row, Select, select, tuple_

from collector.contract import PairKey
from collector.store.clickhouse import pair_counts, rollups
from collector.store.clickhouse.connection import TABLES, AnalyticsConnection
from collector.store.reader import Merged, Reader, RollupQuery, TableSize, TooManyRowsError
from collector.store.tables import generation as g
from collector.store.tables import score as s

_KEY: Final = itemgetter(0, 1)
_ROWS_A_QUERY: Final = 1000
_MOST_ROWS_A_QUERY: Final = 16_000
"""Exceeded only if one pair has more rows."""
_MORE_GENERATIONS: Final = 8


class ClickHouseReader(Reader):
    """Reads visible rows; each query returns its whole result at once, not streamed."""

    generations_at_least = 200_000
    ids_a_query = 16_000

    def __init__(self, connection: AnalyticsConnection, beside: Reader) -> None:
        self._connection = connection
        self._beside = beside

    def completed_pairs(self, after: int, up_to: int | None, floor: int) -> dict[str, int]:
        """Count, by rollout, the pairs that a generation in (after, up_to] completed."""
        return pair_counts.completed(self._connection, after, up_to, floor)

    def broken_pairs(self, floor: int, before: int, last: int) -> dict[str, int]:
        """Count, by rollout, the pairs up to id `last` that use a generation in [floor, before)."""
        return pair_counts.broken(self._connection, floor, before, last)

    def rows_of_pairs(
        self, statement: Select[Any], after: PairKey | None, up_to: int | None
    ) -> Generator[Sequence[Row[Any]], None, None]:
        """Yield each pair's rows, from queries of increasing size."""
        if up_to is not None:
            statement = statement.where(g.c.id <= up_to)
        size = _ROWS_A_QUERY
        while True:
            rest = statement
            if after is not None:
                # The first condition uses the index; the second is exact.
                beyond = tuple_(g.c.prompt_id, g.c.repeat) > tuple_(*after)
                rest = rest.where(g.c.prompt_id >= after.prompt_id, beyond)
            rows = self._connection.execute(rest.limit(size)).all()
            pairs = [list(group) for _, group in groupby(rows, key=_KEY)]
            if len(rows) < size:
                yield from pairs
                return
            # The last pair may have more rows.
            yield from pairs[:-1]
            if len(pairs) > 1:
                after = PairKey(*_KEY(pairs[-2][0]))
            size = min(size * 4, _MOST_ROWS_A_QUERY) if len(pairs) > 1 else size * 4

    def rows_of_scores(
        self, statement: Select[Any], rollout: str, first_id: int, limit: int
    ) -> Sequence[Row[Any]]:
        """Return rows of a statement, reading the scores of a batch of generations at a time.

        ClickHouse's join reads both tables whole, whatever its limit, unless each is filtered.
        """
        rows: list[Row[Any]] = []
        size = limit + 1  # plus the last one of the previous page and the first of the next
        while len(rows) < limit:
            of_rollout = (g.c.rollout == rollout, g.c.id >= first_id)
            later = select(g.c.id).where(*of_rollout).order_by(g.c.id).limit(1).offset(size)
            end_id: int | None = self._connection.scalar(later)
            some = of_rollout if end_id is None else (*of_rollout, g.c.id < end_id)
            near = self.near(s.c.trace_id, select(g.c.trace_id).where(*some))
            rows += self._connection.execute(statement.where(*some, *near).limit(limit)).all()
            if end_id is None:
                break
            # Batches grow, so that a rollout with few scores takes few queries.
            first_id, size = end_id, size * _MORE_GENERATIONS
        return rows

    def near(self, trace_id: Column[Any], traces: Select[Any]) -> list[ColumnElement[bool]]:
        """Return the condition that rows are of these traces; otherwise all would be read."""
        return [trace_id.in_(traces)]

    def newest_revision(self) -> int:
        """Return the revision of the latest score post; 0 if there is none."""
        # Over all rows: excluding replaced ones takes far longer.
        newest = self._connection.query("SELECT max(revision) FROM score", final=False)
        return newest.column(0)[0].as_py() or 0

    def merged(self, query: RollupQuery) -> Iterable[Merged]:
        """Return the rollups of the series, merged over all ranges."""
        found = list(rollups.merged(self._connection, query))
        if query.at_most is not None and len(found) > query.at_most:
            raise TooManyRowsError
        return found

    def pending_deltas(self) -> int:
        """Return how many rollup deltas wait to be folded."""
        return rollups.pending(self._connection)

    def table_sizes(self, names: Iterable[str]) -> dict[str, TableSize]:
        """Return the sizes of these tables, by name.

        Sizes of tables in ClickHouse are those of its parts, which include invisible rows.
        """
        parts = self._connection.clickhouse.sizes()
        there = {table.name for table in TABLES}
        wanted = list(names)
        beside = self._beside.table_sizes(name for name in wanted if name not in there)
        return {
            name: beside[name]
            if name in beside
            else TableSize(
                parts.get(name, (0, 0))[0], estimated=False, size_bytes=parts.get(name, (0, 0))[1]
            )
            for name in wanted
        }
