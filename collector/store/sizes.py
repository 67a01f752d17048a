"""How much is stored."""

from sqlalchemy import Connection, func, select

from collector.store.tables import metadata


def row_counts(connection: Connection) -> dict[str, int]:
    """Return the number of rows of each table, by name."""
    return {
        name: connection.scalar(select(func.count()).select_from(table)) or 0
        for name, table in sorted(metadata.tables.items())
    }
