"""Writes of batches into a PostgreSQL database."""

from collections.abc import Sequence

from sqlalchemy import delete
from sqlalchemy.dialects import postgresql

from collector.store import tables
from collector.store.days import BY_DAY
from collector.store.postgres import partitions
from collector.store.postgres.bulk import PostgresBulk
from collector.store.reader import StoreConnection
from collector.store.relational.writer import RelationalWriter
from collector.store.span_rows import SpanRows


class PostgresWriter(RelationalWriter):
    """Writes batches; drops a day as a partition once no other rows refer to its spans."""

    def __init__(self, connection: StoreConnection) -> None:
        super().__init__(connection, PostgresBulk(connection), postgresql.insert)

    def delete_content(self, before: int, at_most: int) -> int:  # noqa: ARG002  # a day is quick
        """Drop the oldest day of texts if it ends at or before the id; return 1 if dropped."""
        return partitions.drop_oldest(self.connection, tables.content.name, before)

    def drop_days(self, before: int) -> int:
        """Drop one partition that ends at or before the id; return 0 if there is none, else 1."""
        dropped = (partitions.drop_oldest(self.connection, t.name, before) for t in BY_DAY)
        return next(filter(None, dropped), 0)

    def forget_spans(self, floor: int, end: int) -> int:
        """Delete the rows outside partitions that refer to spans in [floor, end)."""
        s = tables.span.c
        here = (s.id >= floor, s.id < end)
        for table in (tables.score, tables.feedback):
            of_span = (table.c.trace_id == s.trace_id, table.c.span_id == s.span_id)
            self.connection.execute(delete(table).where(*of_span, *here))
        # Uses the BRIN index on ids: a join with the partition would access the keys at random.
        key = tables.span_key.c.id
        old = delete(tables.span_key).where(key >= floor, key < end)
        return self.connection.execute(old).rowcount

    def _begin(self, spans: Sequence[SpanRows]) -> int:
        first_id = super()._begin(spans)
        partitions.ensure(self.connection, first_id)
        return first_id
