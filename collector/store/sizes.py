"""How much is stored."""

from typing import Final, NamedTuple

from sqlalchemy import Connection, func, select, text

from collector.store import partitions
from collector.store.clickhouse import AnalyticsConnection, analytics_of
from collector.store.clickhouse.connection import TABLES
from collector.store.tables import metadata, span

_COUNTED_UP_TO: Final = 100_000
"""Rows of a PostgreSQL table beyond which its own estimate is good enough."""


class TableSize(NamedTuple):
    """One table."""

    rows: int
    estimated: bool
    """PostgreSQL's own estimate, as of its last ANALYZE, instead of a count."""
    size_bytes: int | None
    """With its indexes; None where the database cannot tell."""


def of_tables(connection: Connection) -> dict[str, TableSize]:
    """Return the size of each table, by name."""
    measure = _postgres if connection.dialect.name == "postgresql" else _sqlite
    analytics = analytics_of(connection)
    there = {} if analytics is None else _clickhouse(analytics)
    return {
        name: there[name] if name in there else measure(connection, name)
        for name in sorted(metadata.tables)
    }


def row_counts(connection: Connection) -> dict[str, int]:
    """Return the number of rows of each table, by name, all counted."""
    return {name: _count(connection, name) for name in sorted(metadata.tables)}


def days(connection: Connection) -> list[int]:
    """Return the days of arrival of which spans are held, counted from 1970-01-01."""
    found = []
    first = 0
    statement = select(func.min(span.c.id))
    while (id_ := connection.scalar(statement.where(span.c.id >= first))) is not None:
        day = partitions.day_of(id_)
        found.append(day)
        first = partitions.first_id_of_day(day + 1)
    return found


def _count(connection: Connection, name: str) -> int:
    return connection.scalar(select(func.count()).select_from(metadata.tables[name])) or 0


def _clickhouse(connection: AnalyticsConnection) -> dict[str, TableSize]:
    """Return the sizes of what ClickHouse holds: its parts' rows, those too that do not count."""
    sizes = connection.clickhouse.sizes()
    return {
        table.name: TableSize(rows, estimated=False, size_bytes=size_bytes)
        for table in TABLES
        for rows, size_bytes in [sizes.get(table.name, (0, 0))]
    }


def _sqlite(connection: Connection, name: str) -> TableSize:
    return TableSize(_count(connection, name), estimated=False, size_bytes=_pages(connection, name))


def _pages(connection: Connection, name: str) -> int | None:
    built_in = connection.exec_driver_sql("PRAGMA compile_options").scalars().all()
    if "ENABLE_DBSTAT_VTAB" not in built_in:
        return None
    statement = text(
        "SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE "
        "AND name IN (SELECT name FROM sqlite_master WHERE tbl_name = :name)"
    )
    return connection.scalar(statement, {"name": name}) or 0


def _postgres(connection: Connection, name: str) -> TableSize:
    statement = text(
        "SELECT sum(pg_total_relation_size(c.oid)) AS size_bytes, sum(greatest(c.reltuples, 0)) "
        "AS row_estimate FROM pg_class c WHERE c.oid = to_regclass(:name) OR c.oid IN "
        "(SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass(:name))"
    )
    row = connection.execute(statement, {"name": name}).one()
    estimated = row.row_estimate > _COUNTED_UP_TO
    rows = int(row.row_estimate) if estimated else _count(connection, name)
    return TableSize(rows, estimated=estimated, size_bytes=int(row.size_bytes))
