"""More spans in a Phoenix that is stopped than it would take in within the hour.

It takes some 60 spans a second. A few thousand that came in by its own door are repeated inside its
SQLite file, each time earlier and under new ids, with the rows that it keeps beside each span.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from benchmarks.load.targets import TargetError

_TABLES = ("traces", "spans", "span_costs", "span_cost_details")
"""Those that a span has rows in, the ones that others refer to first."""
_REFERS_TO = {
    "trace_rowid": "traces",
    "span_rowid": "spans",
    "span_cost_id": "span_costs",
}
_TIMES = ("start_time", "end_time", "span_start_time")
_NEW = {"trace_id": "lower(hex(randomblob(16)))", "span_id": "lower(hex(randomblob(8)))"}


def multiply(database: Path, spans: int) -> int:
    """Repeat what the file holds until it has at least so many spans; return how many it has.

    Raises `TargetError` where its spans have parents, for those would all be of the first copy.
    """
    with closing(sqlite3.connect(database)) as connection, connection:
        if connection.execute("SELECT count(parent_id) FROM spans").fetchone()[0]:
            raise TargetError(f"{database}: has spans with parents; send it one span a trace")
        first = {table: _last_id(connection, table) for table in _TABLES}
        held = _held(connection)
        length_s = connection.execute(
            "SELECT unixepoch(max(start_time)) - unixepoch(min(start_time)) + 1 FROM spans"
        ).fetchone()[0]
        for number in range(1, -(-spans // held)):
            for table in _TABLES:
                connection.execute(_copy(connection, table, number, first, length_s))
        connection.execute("ANALYZE")
        return _held(connection)


def _held(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM spans").fetchone()[0])


def _last_id(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT max(id) FROM {table}").fetchone()[0])  # noqa: S608  # ours


def _copy(
    connection: sqlite3.Connection, table: str, number: int, first: dict[str, int], length_s: int
) -> str:
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    earlier = f"-{number * length_s} seconds"
    values = []
    for name in names:
        if name == "id":
            values.append(f"id + {number * first[table]}")
        elif name in _REFERS_TO:
            values.append(f"{name} + {number * first[_REFERS_TO[name]]}")
        elif name in _TIMES:
            # Milliseconds, written as the microseconds that it stores.
            values.append(f"strftime('%Y-%m-%d %H:%M:%f', {name}, '{earlier}') || '000'")
        else:
            values.append(_NEW.get(name, name))
    return (
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} "  # noqa: S608  # its own names, and numbers
        f"FROM {table} WHERE id <= {first[table]}"
    )
