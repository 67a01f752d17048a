"""Sizes of the stored tables."""

from sqlalchemy import Connection, func, select

from collector.store import days as arrival
from collector.store.reader import StoreConnection, TableSize
from collector.store.tables import metadata, span


def of_tables(connection: StoreConnection) -> dict[str, TableSize]:
    """Return the size of each table, by name."""
    return connection.reader.table_sizes(sorted(metadata.tables))


def row_counts(connection: Connection) -> dict[str, int]:
    """Return the exact number of rows of each table, by name."""
    return {
        name: connection.scalar(select(func.count()).select_from(metadata.tables[name])) or 0
        for name in sorted(metadata.tables)
    }


def days(connection: Connection) -> list[int]:
    """Return the days of arrival with stored spans, counted from 1970-01-01."""
    found = []
    first = 0
    statement = select(func.min(span.c.id))
    while (id_ := connection.scalar(statement.where(span.c.id >= first))) is not None:
        day = arrival.day_of(id_)
        found.append(day)
        first = arrival.first_id_of_day(day + 1)
    return found
