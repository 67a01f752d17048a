"""The partitions that hold a day."""

from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection, bindparam, func, select, text

from collector.store.days import BY_DAY, DAY_BITS, day_of, first_id_of_day

_FOUND: Final = select(
    *(func.to_regclass(bindparam(table.name)).label(table.name) for table in BY_DAY)
)
"""For each table by its name, the partition that is named for it, if there is one."""
# Dropping waits for whoever reads the table, and all who come after wait behind it.
_DROP_WITHIN: Final = "500ms"


def ensure(connection: Connection, id_: int) -> None:
    """Make the partitions of the id's day, unless they are there."""
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
                f"FOR VALUES FROM ({first_id_of_day(day)}) TO ({day + 1 << DAY_BITS})"
            )


def days(connection: Connection, table_name: str) -> Iterator[int]:
    """Yield the days that the table has a partition of, in order."""
    names = connection.scalars(
        text(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            "WHERE i.inhparent = to_regclass(:table) ORDER BY c.relname"
        ),
        {"table": table_name},
    )
    yield from (int(name.removeprefix(f"{table_name}_day_")) for name in names)


def drop_oldest(connection: Connection, table_name: str, before: int) -> int:
    """Drop the table's oldest partition that ends by the id, and return how many that are."""
    oldest = next(days(connection, table_name), None)
    if oldest is None or first_id_of_day(oldest + 1) > before:
        return 0
    connection.execute(text(f"SET LOCAL lock_timeout = '{_DROP_WITHIN}'"))
    connection.exec_driver_sql(f"DROP TABLE {name_of(table_name, oldest)}")
    return 1


def name_of(table_name: str, day: int) -> str:
    """Return the name of the table's partition of a day."""
    return f"{table_name}_day_{day:06}"
