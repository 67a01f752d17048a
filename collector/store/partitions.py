"""Days: how ids tell the day of arrival, and the partitions that hold a day on PostgreSQL."""

from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection, bindparam, func, select, text

from collector.store import tables

_DAY_S: Final = 86_400
DAY_BITS: Final = 32
"""Of an id, for the rows of one day."""

BY_DAY: Final = (tables.span, tables.content, tables.generation)
"""The tables of which a day can be dropped."""
_FOUND: Final = select(
    *(func.to_regclass(bindparam(table.name)).label(table.name) for table in BY_DAY)
)
"""For each table by its name, whether there is the one that is named for it."""


def first_id_of(unix_s: float) -> int:
    """Return the first id of the day, in UTC."""
    return first_id_of_day(int(unix_s // _DAY_S))


def first_id_of_day(day: int) -> int:
    """Return the first id of the day, counted from 1970-01-01."""
    return day << DAY_BITS


def day_of(id_: int) -> int:
    """Return the day of an id, counted from 1970-01-01."""
    return id_ >> DAY_BITS


def ensure(connection: Connection, id_: int) -> None:
    """Make the partitions that the id's rows go to, where there are none; PostgreSQL alone."""
    if connection.dialect.name != "postgresql":
        return
    day = day_of(id_)
    names = {table.name: name_of(table.name, day) for table in BY_DAY}
    found = connection.execute(_FOUND, names).mappings().one()
    for table in BY_DAY:
        name = names[table.name]
        if found[table.name] is None:
            # Attached, for a table that is created as a partition waits until nobody reads its
            # parent, and every read and write then waits behind it.
            connection.exec_driver_sql(f"CREATE TABLE {name} (LIKE {table.name} INCLUDING ALL)")
            connection.exec_driver_sql(
                f"ALTER TABLE {table.name} ATTACH PARTITION {name} "
                f"FOR VALUES FROM ({day << DAY_BITS}) TO ({day + 1 << DAY_BITS})"
            )


def days(connection: Connection, table_name: str) -> Iterator[int]:
    """Yield the days that the table has a partition of on PostgreSQL, in order."""
    names = connection.scalars(
        text(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            "WHERE i.inhparent = to_regclass(:table) ORDER BY c.relname"
        ),
        {"table": table_name},
    )
    yield from (int(name.removeprefix(f"{table_name}_day_")) for name in names)


def name_of(table_name: str, day: int) -> str:
    """Return the name of the table's partition of a day."""
    return f"{table_name}_day_{day:06}"
