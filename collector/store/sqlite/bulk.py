"""Many rows into an SQLite table."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Table

from collector.store.bulk import Values
from collector.store.relational.packing import kinds_of, pack, pack_sparse
from collector.store.sqlite import packed_rows

R = TypeVar("R")
_ROWS_A_STATEMENT: Final = 128
_UNLESS_THERE: Final = "ON CONFLICT DO NOTHING"


class SqliteBulk:
    """Packed rows, or tuples straight to the driver.

    SQLAlchemy's own executemany builds a mapping for each row, which costs more than the insert.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert rows that have a value, or None, for each of the columns."""
        self._insert(table, columns, rows)

    def insert_sparse(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows of which each names its columns; the others are NULL."""
        for some in _pieces(rows):
            made = pack_sparse(table, some) if packed_rows.are_readable() else None
            if made is None:
                self._insert_by_columns(table, some)
            else:
                packed, columns = made
                self._insert_packed(table, columns, packed)

    def _insert_by_columns(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows of the same columns together.

        Python's driver takes 0.4 µs to bind a None, eight times what it takes for a number, and
        most columns of a generation are NULL.
        """
        by_columns: dict[tuple[str, ...], list[Values]] = defaultdict(list)
        for row in rows:
            by_columns[tuple(row)].append(tuple(row.values()))
        for columns, values in by_columns.items():
            self._connection.exec_driver_sql(_insert_sql(table, columns), values)

    def insert_new(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> int:
        """Insert the rows whose primary key is not there yet, and return how many they were."""
        return self._insert(table, columns, rows, _UNLESS_THERE)

    def insert_few_new(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert the rows whose key, one integer, is not there: dozens, of which few are new."""
        self.insert_new(table, columns, rows)

    def _insert(
        self, table: Table, columns: Sequence[str], rows: Sequence[Values], conflict: str = ""
    ) -> int:
        """Return how many rows were inserted."""
        inserted = 0
        names = tuple(columns)
        for some in _pieces(rows):
            packed = pack(some, kinds_of(table, names)) if packed_rows.are_readable() else None
            if packed is None:
                sql = f"{_insert_sql(table, names)} {conflict}"
                inserted += self._connection.exec_driver_sql(sql, some).rowcount
            else:
                inserted += self._insert_packed(table, names, packed, conflict)
        return inserted

    def _insert_packed(
        self, table: Table, columns: tuple[str, ...], packed: bytes, conflict: str = ""
    ) -> int:
        """Insert rows in one statement, and return how many."""
        sql = _insert_packed_sql(table, columns, conflict)
        return self._connection.exec_driver_sql(sql, (packed,)).rowcount


def _pieces(rows: Sequence[R]) -> Iterator[list[R]]:
    """Yield the rows in pieces that stay in the processor's cache while they are stored."""
    for at in range(0, len(rows), _ROWS_A_STATEMENT):
        yield list(rows[at : at + _ROWS_A_STATEMENT])


def _insert_sql(table: Table, columns: Sequence[str]) -> str:
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    return f"INSERT INTO {table.name} ({names}) VALUES ({marks})"  # noqa: S608  # names are ours


@lru_cache(maxsize=64)
def _insert_packed_sql(table: Table, columns: tuple[str, ...], conflict: str) -> str:
    names, values = ", ".join(columns), ", ".join(packed_rows.names(len(columns)))
    # OR FAIL: what is stored before a row fails is taken back by the transaction's end, and SQLite
    # need not keep a copy of every page that it changes for the statement's.
    return (
        f"INSERT OR FAIL INTO {table.name} ({names}) "  # noqa: S608  # names are ours
        f"SELECT {values} FROM packed_rows(?, '{kinds_of(table, columns)}') WHERE true {conflict}"
    )
