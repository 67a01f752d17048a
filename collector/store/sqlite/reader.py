"""Reads specific to SQLite."""

from collections.abc import Iterable

from sqlalchemy import Connection, Select, func, select, text

from collector.store.reader import TableSize
from collector.store.relational.reader import RelationalReader
from collector.store.tables import metadata


class SqliteReader(RelationalReader):
    """Reads from an SQLite file."""

    def table_sizes(self, names: Iterable[str]) -> dict[str, TableSize]:
        """Return the sizes of these tables, by name; rows are counted."""
        connection = self._connection
        built_in = connection.exec_driver_sql("PRAGMA compile_options").scalars().all()
        knows_pages = "ENABLE_DBSTAT_VTAB" in built_in
        return {
            name: TableSize(
                rows=connection.scalar(_count_of(name)) or 0,
                estimated=False,
                size_bytes=_pages(connection, name) if knows_pages else None,
            )
            for name in names
        }


def _count_of(name: str) -> Select[int]:
    return select(func.count()).select_from(metadata.tables[name])


def _pages(connection: Connection, name: str) -> int:
    statement = text(
        "SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE "
        "AND name IN (SELECT name FROM sqlite_master WHERE tbl_name = :name)"
    )
    return connection.scalar(statement, {"name": name}) or 0
