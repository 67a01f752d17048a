"""Reads of one relational database with all tables."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Row, Select, func, select, tuple_

from collector.contract import PairKey
from collector.store.reader import Merged, Reader, RollupQuery
from collector.store.relational import pair_counts, rollups
from collector.store.tables import generation as g
from collector.store.tables import score as s

_KEY: Final = itemgetter(0, 1)
_ROWS_A_FETCH: Final = 1000


class RelationalReader(Reader):
    """Reads with SQL shared by SQLite and PostgreSQL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def completed_pairs(self, after: int, up_to: int | None, floor: int) -> dict[str, int]:
        """Count, by rollout, the pairs that a generation in (after, up_to] completed."""
        return pair_counts.completed(self._connection, after, up_to, floor)

    def broken_pairs(self, floor: int, before: int, last: int) -> dict[str, int]:
        """Count, by rollout, the pairs up to id `last` that use a generation in [floor, before)."""
        return pair_counts.broken(self._connection, floor, before, last)

    def rows_of_pairs(
        self, statement: Select[Any], after: PairKey | None, up_to: int | None
    ) -> Generator[Sequence[Row[Any]], None, None]:
        """Yield each pair's rows as they are fetched."""
        if after is not None:
            statement = statement.where(tuple_(g.c.prompt_id, g.c.repeat) > tuple_(*after))
        found = self._connection.execution_options(yield_per=_ROWS_A_FETCH).execute(statement)
        with closing(found):
            # Filtered here: with the condition in SQL, the planner would read by id and sort.
            rows = found if up_to is None else (row for row in found if row.id <= up_to)
            for _, group in groupby(rows, key=_KEY):
                yield list(group)

    def rows_of_scores(
        self,
        statement: Select[Any],
        rollout: str,  # noqa: ARG002  # the statement says it
        first_id: int,  # noqa: ARG002  # the statement says it
        limit: int,
    ) -> Sequence[Row[Any]]:
        """Return up to `limit` rows of a statement on generations and their scores."""
        return self._connection.execute(statement.limit(limit)).all()

    def near(
        self,
        trace_id: Column[Any],  # noqa: ARG002  # the join uses indexes
        traces: Select[Any],  # noqa: ARG002
    ) -> list[ColumnElement[bool]]:
        """Return no conditions: indexes make the join selective."""
        return []

    def newest_revision(self) -> int:
        """Return the revision of the latest score post; 0 if there is none."""
        return self._connection.scalar(select(func.max(s.c.revision))) or 0

    def merged(self, query: RollupQuery) -> Iterable[Merged]:
        """Return the rollups of the series, merged over all ranges."""
        return rollups.merged(self._connection, query)

    def pending_deltas(self) -> int:
        """Return approximately how many rollup deltas wait to be folded."""
        return rollups.pending(self._connection)
