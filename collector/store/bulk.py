"""Many rows into one table, as each database takes them fastest."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, Protocol, TypeVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
)

from collector.store import packed_rows

try:
    from collector.store._rows import pack, pack_named
except ImportError:  # there was no compiler when this was installed

    def pack(
        rows: list[tuple[Any, ...]],  # noqa: ARG001  # as the compiled one
        kinds: str,  # noqa: ARG001
        /,
    ) -> bytes | None:
        """Return nothing: the caller knows another way."""
        return None

    def pack_named(
        rows: list[dict[str, Any]],  # noqa: ARG001  # as the compiled one
        names: tuple[str, ...],  # noqa: ARG001
        kinds: str,  # noqa: ARG001
        /,
    ) -> tuple[bytes, tuple[str, ...]] | None:
        """Return nothing: the caller knows another way."""
        return None


Values = tuple[Any, ...]  # Any: one value a column, each of its column's type
R = TypeVar("R")
_ROWS_A_STATEMENT: Final = 128
_UNLESS_THERE: Final = "ON CONFLICT DO NOTHING"


class Bulk(Protocol):
    """How one kind of database takes rows; the connection is in the writer's transaction."""

    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert rows that have a value, or None, for each of the columns."""

    def insert_sparse(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows of which each names its columns; the others are NULL."""

    def insert_new(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> int:
        """Insert the rows whose primary key is not there yet, and return how many they were."""


class RelationalBulk(Bulk, Protocol):
    """That of a database with transactions and keys."""

    def insert_few_new(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert the rows whose key, one integer, is not there: dozens, of which few are new."""


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
            made = _pack_named(table, some) if packed_rows.are_readable() else None
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
            packed = pack(some, _kinds_of(table, names)) if packed_rows.are_readable() else None
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


class PostgresBulk:
    """COPY, through the driver's own connection."""

    def __init__(self, connection: Connection) -> None:
        self._driver: Any = connection.connection.driver_connection  # Any: psycopg's

    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert rows that have a value, or None, for each of the columns."""
        if not self._copy_packed(table.name, table, columns, list(rows)):
            self._copy(table.name, table, columns, rows)

    def insert_sparse(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows of which each names its columns; the others are NULL."""
        made = _pack_named(table, list(rows))
        if made is not None:
            packed, columns = made
            self._send(table.name, columns, packed)
        else:
            named: set[str] = set().union(*rows)
            some = [column.name for column in table.columns if column.name in named]
            self._copy(table.name, table, some, [tuple(map(row.get, some)) for row in rows])

    def insert_new(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> int:
        """Insert the rows whose primary key is not there yet, and return how many they were."""
        names = ", ".join(columns)
        with self._driver.cursor() as cursor:
            # Once a connection: a table made and dropped with each commit bloats the catalogue.
            cursor.execute("SET LOCAL client_min_messages = warning")
            cursor.execute(
                f"CREATE TEMPORARY TABLE IF NOT EXISTS new_{table.name} ON COMMIT DELETE ROWS AS "  # noqa: S608  # names are ours
                f"SELECT {names} FROM {table.name} WITH NO DATA"
            )
            if not self._copy_packed(f"new_{table.name}", table, columns, list(rows)):
                self._copy(f"new_{table.name}", table, columns, rows)
            cursor.execute(
                f"INSERT INTO {table.name} ({names}) SELECT {names} FROM new_{table.name} "  # noqa: S608  # names are ours
                "ON CONFLICT DO NOTHING"
            )
            return int(cursor.rowcount)

    def insert_few_new(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert the rows whose key, one integer, is not there: dozens, of which few are new."""
        (key,) = table.primary_key.columns
        at = columns.index(key.name)
        names, marks = ", ".join(columns), ", ".join(["%s"] * len(columns))
        sql = f"INSERT INTO {table.name} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608  # names are ours
        with self._driver.cursor() as cursor:
            # One question for all of them: an insert that comes to nothing costs as much as any.
            cursor.execute(
                f"SELECT {key.name} FROM {table.name} WHERE {key.name} = ANY(%s::bigint[])",  # noqa: S608  # as above
                ([row[at] for row in rows],),
            )
            known = {id_ for (id_,) in cursor.fetchall()}
            new = [row for row in rows if row[at] not in known]
            if new:
                cursor.executemany(sql, _storable(new))

    def _copy_packed(
        self, name: str, like: Table, columns: Sequence[str], rows: list[Values]
    ) -> bool:
        """Copy rows as `_copy` does, or say no: where one of them is not as its columns are.

        The driver's own way takes four times as long, and as long again to make rows of mappings.
        """
        packed = pack(rows, _kinds_of(like, tuple(columns)))
        if packed is not None:
            self._send(name, columns, packed)
        return packed is not None

    def _send(self, name: str, columns: Sequence[str], packed: bytes) -> None:
        with self._driver.cursor() as cursor, cursor.copy(_copy_sql(name, columns)) as copy:
            copy.write(packed)

    def _copy(self, name: str, like: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Copy rows into a table whose columns are of the types that `like` has.

        Binary, for as text every byte of a payload is written and read as two.
        """
        with self._driver.cursor() as cursor, cursor.copy(_copy_sql(name, columns)) as copy:
            copy.set_types([_type_of(like.c[column]) for column in columns])
            for row in _storable(rows):
                copy.write_row(row)


def _copy_sql(name: str, columns: Sequence[str]) -> str:
    return f"COPY {name} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"


def _storable(rows: Sequence[Values]) -> Sequence[Values]:
    """Return the rows as PostgreSQL can hold them: its text has no character 0."""
    texts = [value for row in rows for value in row if isinstance(value, str)]
    if "\0" not in "".join(texts):
        return rows
    return [
        tuple(v.replace("\0", "\ufffd") if isinstance(v, str) else v for v in row) for row in rows
    ]


_POSTGRES_TYPES: Mapping[type[Any], str] = {
    BigInteger: "int8",
    Integer: "int4",
    Double: "float8",
    Boolean: "bool",
    LargeBinary: "bytea",
    Text: "text",
    String: "varchar",
}


_PACKED_KINDS: Mapping[str, str] = {
    "int8": "q",
    "int4": "i",
    "float8": "d",
    "bool": "b",
    "bytea": "y",
    "text": "t",
    "varchar": "t",
}
"""What `pack` calls PostgreSQL's types."""


def _type_of(column: Column[Any]) -> str:
    """Return PostgreSQL's name of the column's type."""
    return _POSTGRES_TYPES[type(column.type)]


@lru_cache(maxsize=64)
def _kinds_of(table: Table, columns: tuple[str, ...]) -> str:
    """Return how `pack` writes each of the columns."""
    return "".join(_PACKED_KINDS[_type_of(table.c[column])] for column in columns)


def _pack_named(table: Table, rows: list[dict[str, Any]]) -> tuple[bytes, tuple[str, ...]] | None:
    """Return the rows packed, and the columns that any of them names, in the table's order."""
    names = _names_of(table)
    return pack_named(rows, names, _kinds_of(table, names))


@cache
def _names_of(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns)


def _pieces(rows: Sequence[R]) -> Iterator[list[R]]:
    """Yield the rows in pieces that stay in the processor's cache while they are stored."""
    for at in range(0, len(rows), _ROWS_A_STATEMENT):
        yield list(rows[at : at + _ROWS_A_STATEMENT])


def of(connection: Connection) -> RelationalBulk:
    """Return how the connection's database takes rows."""
    if connection.dialect.name == "postgresql":
        return PostgresBulk(connection)
    return SqliteBulk(connection)


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
        f"SELECT {values} FROM packed_rows(?, '{_kinds_of(table, columns)}') WHERE true {conflict}"
    )
