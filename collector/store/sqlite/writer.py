"""Writes of batches into an SQLite file."""

from sqlalchemy import delete, select
from sqlalchemy.dialects import sqlite

from collector.store import tables
from collector.store.days import BY_DAY
from collector.store.reader import StoreConnection
from collector.store.relational.writer import RelationalWriter, last_of
from collector.store.sqlite.bulk import SqliteBulk


class SqliteWriter(RelationalWriter):
    """Writes batches; deletes days by id range."""

    def __init__(self, connection: StoreConnection) -> None:
        super().__init__(connection, SqliteBulk(connection), sqlite.insert)

    def delete_content(self, before: int, at_most: int) -> int:
        """Delete texts of spans before an id; return how many rows were deleted."""
        id_ = tables.content.c.id
        last = last_of(self.connection, id_, 0, before, at_most)
        if last is None:
            return 0
        return self.connection.execute(delete(tables.content).where(id_ <= last)).rowcount

    def drop_days(self, before: int) -> int:  # noqa: ARG002  # no partitions
        """Return 0: SQLite has no partitions."""
        return 0

    def forget_spans(self, floor: int, end: int) -> int:  # noqa: ARG002  # none are below the floor
        """Delete the spans before `end` and the rows that refer to them."""
        s = tables.span.c
        keys = [
            tuple(row)
            for row in self.connection.execute(select(s.trace_id, s.span_id).where(s.id < end))
        ]
        for table in (tables.score, tables.feedback, tables.span_key):
            if keys:
                # One by one: SQLite would scan the whole table for a list of keys.
                self.connection.exec_driver_sql(
                    f"DELETE FROM {table.name} WHERE trace_id = ? AND span_id = ?",  # noqa: S608  # ours
                    keys,
                )
        for table in BY_DAY:
            self.connection.execute(delete(table).where(table.c.id < end))
        return len(keys)
