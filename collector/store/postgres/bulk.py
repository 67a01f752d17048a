"""Bulk inserts into a PostgreSQL table."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table

from collector.store.bulk import Values
from collector.store.relational.packing import kinds_of, pack, pack_sparse, type_of


class PostgresBulk:
    """Inserts with COPY on the driver's connection."""

    def __init__(self, connection: Connection) -> None:
        self._driver: Any = connection.connection.driver_connection  # Any: psycopg's

    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert rows with a value or None for each of the columns."""
        if not self._copy_packed(table.name, table, columns, list(rows)):
            self._copy(table.name, table, columns, rows)

    def insert_sparse(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows given as column-to-value mappings; missing columns are NULL."""
        made = pack_sparse(table, list(rows))
        if made is not None:
            packed, columns = made
            self._send(table.name, columns, packed)
        else:
            named: set[str] = set().union(*rows)
            some = [column.name for column in table.columns if column.name in named]
            self._copy(table.name, table, some, [tuple(map(row.get, some)) for row in rows])

    def insert_new(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> int:
        """Insert the rows whose primary key is not stored yet; return how many were inserted."""
        names = ", ".join(columns)
        with self._driver.cursor() as cursor:
            # One per connection: creating and dropping a table per commit bloats the catalogue.
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
        """Insert the rows whose primary key, one integer, is not stored yet."""
        (key,) = table.primary_key.columns
        at = columns.index(key.name)
        names, marks = ", ".join(columns), ", ".join(["%s"] * len(columns))
        sql = f"INSERT INTO {table.name} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608  # names are ours
        with self._driver.cursor() as cursor:
            # One query for all keys: an insert that conflicts costs as much as one that succeeds.
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
        """Copy rows as `_copy` does; return False if a value does not fit its column's type.

        The driver's own conversion takes four times as long, plus as long again to make tuples of
        mappings.
        """
        packed = pack(rows, kinds_of(like, tuple(columns)))
        if packed is not None:
            self._send(name, columns, packed)
        return packed is not None

    def _send(self, name: str, columns: Sequence[str], packed: bytes) -> None:
        with self._driver.cursor() as cursor, cursor.copy(_copy_sql(name, columns)) as copy:
            copy.write(packed)

    def _copy(self, name: str, like: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Copy rows into a table with the column types of `like`.

        In binary format, because the text format doubles every byte of a payload.
        """
        with self._driver.cursor() as cursor, cursor.copy(_copy_sql(name, columns)) as copy:
            copy.set_types([type_of(like.c[column]) for column in columns])
            for row in _storable(rows):
                copy.write_row(row)


def _copy_sql(name: str, columns: Sequence[str]) -> str:
    return f"COPY {name} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"


def _storable(rows: Sequence[Values]) -> Sequence[Values]:
    """Return the rows with NUL replaced: PostgreSQL text cannot contain it."""
    texts = [value for row in rows for value in row if isinstance(value, str)]
    if "\0" not in "".join(texts):
        return rows
    return [
        tuple(v.replace("\0", "\ufffd") if isinstance(v, str) else v for v in row) for row in rows
    ]
