"""The database's clock, used for leases because the collectors' clocks may differ."""

from sqlalchemy import Connection, text

_NOW_MS = {
    # Not now(): it is the time when the transaction began, before it waited for other writers.
    "postgresql": text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"),
    "sqlite": text("SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"),
}


def now_unix_ns(connection: Connection) -> int:
    """Return the database's time, to the millisecond."""
    return int(connection.scalar(_NOW_MS[connection.dialect.name]) or 0) * 1_000_000
