"""Bulk inserts into an SQLite table."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Table

from collector.store.bulk import Values

R = TypeVar("R")
_ROWS_A_STATEMENT: Final = 128
_UNLESS_THERE: Final = "ON CONFLICT DO NOTHING"


class SqliteBulk:
    """Inserts by passing tuples directly to the driver.

    SQLAlchemy's executemany builds a mapping for each row, which costs more than the insert.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert rows with a value or None for each of the columns."""
        self._insert(table, columns, rows)

    def insert_sparse(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows given as column-to-value mappings; missing columns are NULL.

        Rows are grouped by their columns: Python's driver takes 0.4 µs to bind a None, eight times
        as long as a number, and most columns of a generation are NULL.
        """
        by_columns: dict[tuple[str, ...], list[Values]] = defaultdict(list)
        for row in rows:
            by_columns[tuple(row)].append(tuple(row.values()))
        for columns, values in by_columns.items():
            self._insert(table, columns, values)

    def insert_new(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> int:
        """Insert the rows whose primary key is not stored yet; return how many were inserted."""
        return self._insert(table, columns, rows, _UNLESS_THERE)

    def insert_few_new(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert the rows whose primary key, one integer, is not stored yet."""
        self.insert_new(table, columns, rows)

    def _insert(
        self, table: Table, columns: Sequence[str], rows: Sequence[Values], conflict: str = ""
    ) -> int:
        """Return how many rows were inserted."""
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table.name} ({names}) VALUES ({marks}) {conflict}"  # noqa: S608  # names are ours
        return sum(self._connection.exec_driver_sql(sql, some).rowcount for some in _pieces(rows))


def _pieces(rows: Sequence[R]) -> Iterator[list[R]]:
    """Yield the rows in chunks that fit the processor's cache while they are inserted."""
    for at in range(0, len(rows), _ROWS_A_STATEMENT):
        yield list(rows[at : at + _ROWS_A_STATEMENT])
