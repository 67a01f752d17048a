"""PostgreSQL partitions, one per table and day of arrival."""

from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection, bindparam, func, select, text

from collector.store.days import BY_DAY, DAY_BITS, day_of, first_id_of_day

_FOUND: Final = select(
    *(func.to_regclass(bindparam(table.name)).label(table.name) for table in BY_DAY)
)
"""For each table, the partition with the given name, or NULL if it does not exist."""
# DROP waits for readers of the table, and every later statement on the table waits for the DROP.
_DROP_WITHIN: Final = "500ms"


def ensure(connection: Connection, id_: int) -> None:
    """Create the partitions of the id's day if they do not exist."""
    day = day_of(id_)
    names = {table.name: name_of(table.name, day) for table in BY_DAY}
    found = connection.execute(_FOUND, names).mappings().one()
    for table in BY_DAY:
        name = names[table.name]
        if found[table.name] is None:
            # Created alone, then attached: CREATE TABLE … PARTITION OF would wait for all readers
            # of the parent, and every later read and write would wait for it.
            connection.exec_driver_sql(f"CREATE TABLE {name} (LIKE {table.name} INCLUDING ALL)")
            connection.exec_driver_sql(
                f"ALTER TABLE {table.name} ATTACH PARTITION {name} "
                f"FOR VALUES FROM ({first_id_of_day(day)}) TO ({day + 1 << DAY_BITS})"
            )


def days(connection: Connection, table_name: str) -> Iterator[int]:
    """Yield the days for which the table has a partition, in order."""
    names = connection.scalars(
        text(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            "WHERE i.inhparent = to_regclass(:table) ORDER BY c.relname"
        ),
        {"table": table_name},
    )
    yield from (int(name.removeprefix(f"{table_name}_day_")) for name in names)


def drop_oldest(connection: Connection, table_name: str, before: int) -> int:
    """Drop the table's oldest partition if it ends at or before the id; return 1 if dropped."""
    oldest = next(days(connection, table_name), None)
    if oldest is None or first_id_of_day(oldest + 1) > before:
        return 0
    connection.execute(text(f"SET LOCAL lock_timeout = '{_DROP_WITHIN}'"))
    connection.exec_driver_sql(f"DROP TABLE {name_of(table_name, oldest)}")
    return 1


def name_of(table_name: str, day: int) -> str:
    """Return the name of the table's partition for a day."""
    return f"{table_name}_day_{day:06}"
