"""PostgreSQL connection setup, and the lock that serializes writers."""

import logging
from typing import Any

import psycopg
from psycopg.types.string import StrDumperUnknown
from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import OperationalError

# Every writing transaction takes this lock first, so that ids are committed in order and a reader
# that pages by id misses no row.
_WRITER_LOCK = 0x4452_4146_5447_4154  # "DRAFTGAT"
_CONNECT_TIMEOUT_S = 5
_log = logging.getLogger(__name__)
# A process that was stopped, or whose machine is gone, keeps the lock while its connection exists.
# Its transaction's writes were not acknowledged to any sender, so it can be terminated.
_END_STALLED = """
    SELECT pg_terminate_backend(l.pid)
    FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND l.classid = %(high)s::bigint::oid AND l.objid = %(low)s::bigint::oid AND l.objsubid = 1
      AND a.wait_event_type = 'Client'
      AND greatest(a.query_start, a.state_change)
          < clock_timestamp() - make_interval(secs => %(patience_s)s)
"""


class _TextDumper(StrDumperUnknown):
    """Replaces NUL in text parameters: PostgreSQL text cannot contain it."""

    def dump(self, obj: str) -> Any:  # Any: bytes, or a buffer of them
        return super().dump(obj.replace("\0", "\ufffd"))


def create(url: URL, *, busy_timeout_s: float, silent_s: float | None = None) -> Engine:
    """Return an engine on a PostgreSQL database; nothing is opened yet.

    A writer that holds the lock and sends nothing for `silent_s` is terminated by the next writer
    that waits for it; None: never, for writers that meanwhile write to ClickHouse.
    """
    engine = create_engine(
        url,
        hide_parameters=True,  # otherwise error messages would put rows, with text, into the log
        pool_size=8,
        max_overflow=40,
        pool_pre_ping=True,  # a restarted server leaves dead connections in the pool
        isolation_level="REPEATABLE READ",
        connect_args={"connect_timeout": _CONNECT_TIMEOUT_S},
    )

    def on_connect(connection: Any, _record: Any) -> None:  # Any: psycopg's, and unused
        connection.adapters.register_dumper(str, _TextDumper)
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {int(busy_timeout_s * 1000)}")
            cursor.execute("SET synchronous_commit = on")
            # A page reads the first of many rows, but JIT would compile as for all of them: 0.2 s
            # for rows that an index finds in 1 ms.
            cursor.execute("SET jit = off")
        connection.commit()

    def on_begin(connection: Connection) -> None:
        if connection.get_execution_options().get("writes", False):
            # Not REPEATABLE READ: must see what was committed while waiting for the lock.
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            try:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITER_LOCK})")
            except OperationalError as exc:
                refused = isinstance(exc.orig, psycopg.errors.LockNotAvailable)
                if refused and silent_s is not None:
                    _end_stalled(connection.connection.driver_connection, silent_s)
                raise

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
    return engine


def _end_stalled(driver: Any, patience_s: float) -> None:  # Any: psycopg's connection
    """Terminate the backend that holds the writers' lock if its client has stopped sending.

    Only if the server has waited for the client for `patience_s`; a backend that is executing a
    statement is left alone, however slow.
    """
    low = _WRITER_LOCK & 0xFFFF_FFFF
    key = {"high": _WRITER_LOCK >> 32, "low": low, "patience_s": patience_s}
    driver.rollback()
    ended = driver.execute(_END_STALLED, key).rowcount
    driver.commit()
    if ended:
        _log.warning(
            "a process that held the lock of writers was silent for %g s: its transaction was "
            "ended, and nothing of it was acknowledged",
            patience_s,
        )


def size_bytes(connection: Connection) -> int:
    """Return the size of the database."""
    return int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0)
