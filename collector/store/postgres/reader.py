"""Reads specific to PostgreSQL."""

from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection, func, select, text

from collector.store.reader import TableSize
from collector.store.relational.reader import RelationalReader
from collector.store.tables import metadata

_COUNTED_UP_TO: Final = 100_000
"""For tables with more rows, PostgreSQL's estimate is used instead of a count."""


class PostgresReader(RelationalReader):
    """Reads from a PostgreSQL database."""

    def table_sizes(self, names: Iterable[str]) -> dict[str, TableSize]:
        """Return the sizes of these tables, by name; rows of large ones are estimated."""
        return {name: _size(self._connection, name) for name in names}


def _size(connection: Connection, name: str) -> TableSize:
    statement = text(
        "SELECT sum(pg_total_relation_size(c.oid)) AS size_bytes, sum(greatest(c.reltuples, 0)) "
        "AS row_estimate FROM pg_class c WHERE c.oid = to_regclass(:name) OR c.oid IN "
        "(SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass(:name))"
    )
    row = connection.execute(statement, {"name": name}).one()
    estimated = row.row_estimate > _COUNTED_UP_TO
    rows = int(row.row_estimate)
    if not estimated:
        count = select(func.count()).select_from(metadata.tables[name])
        rows = connection.scalar(count) or 0
    return TableSize(rows, estimated=estimated, size_bytes=int(row.size_bytes))
