"""Multiply the spans of a stopped Phoenix, faster than it could ingest them.

It ingests about 60 spans per second. A few thousand spans sent to its endpoint are copied in its
SQLite file, each copy earlier and with new ids, with the rows of related tables.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from benchmarks.load.targets import TargetError

_TABLES = ("traces", "spans", "span_costs", "span_cost_details")
"""Tables with rows of a span, referenced tables first."""
_REFERS_TO = {
    "trace_rowid": "traces",
    "span_rowid": "spans",
    "span_cost_id": "span_costs",
}
_TIMES = ("start_time", "end_time", "span_start_time")
_NEW = {"trace_id": "lower(hex(randomblob(16)))", "span_id": "lower(hex(randomblob(8)))"}


def multiply(database: Path, spans: int) -> int:
    """Copy the file's spans until it has at least `spans`; return how many it has.

    Raises `TargetError` if spans have parents: the copies would all refer to the originals.
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
            # Milliseconds, padded to the microseconds that Phoenix stores.
            values.append(f"strftime('%Y-%m-%d %H:%M:%f', {name}, '{earlier}') || '000'")
        else:
            values.append(_NEW.get(name, name))
    return (
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} "  # noqa: S608  # its own names, and numbers
        f"FROM {table} WHERE id <= {first[table]}"
    )
