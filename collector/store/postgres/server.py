"""PostgreSQL: how a connection is set up."""

import logging
from typing import Any

import psycopg
from psycopg.types.string import StrDumperUnknown
from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import OperationalError

# Any process that writes takes this lock first, so that ids are committed in their order and a
# reader that pages by id misses none.
_WRITER_LOCK = 0x4452_4146_5447_4154  # "DRAFTGAT"
_CONNECT_TIMEOUT_S = 5
_log = logging.getLogger(__name__)
# A process that was stopped, or whose machine is gone, keeps the lock for as long as its connection
# stands. What its transaction had written was acknowledged to nobody, so it can be ended.
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
    """Writes parameters' text as PostgreSQL can hold it: without the character 0."""

    def dump(self, obj: str) -> Any:  # Any: bytes, or a buffer of them
        return super().dump(obj.replace("\0", "\ufffd"))


def create(url: URL, *, busy_timeout_s: float, silent_s: float | None = None) -> Engine:
    """Return an engine on a PostgreSQL database; nothing is opened yet.

    A writer that holds the lock and says nothing for `silent_s` is ended by whoever waits for it;
    None: never, as where writers write to another database meanwhile, silently but alive.
    """
    engine = create_engine(
        url,
        hide_parameters=True,  # an error's message would hold rows, and so text, in the log
        pool_size=8,
        max_overflow=40,
        pool_pre_ping=True,  # a server that was restarted leaves dead connections behind
        isolation_level="REPEATABLE READ",
        connect_args={"connect_timeout": _CONNECT_TIMEOUT_S},
    )

    def on_connect(connection: Any, _record: Any) -> None:  # Any: psycopg's, and unused
        connection.adapters.register_dumper(str, _TextDumper)
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {int(busy_timeout_s * 1000)}")
            cursor.execute("SET synchronous_commit = on")
            # A page is the first rows of many, and the server would compile for all of them: a
            # fifth of a second, for rows that an index gives in one millisecond.
            cursor.execute("SET jit = off")
        connection.commit()

    def on_begin(connection: Connection) -> None:
        if connection.get_execution_options().get("writes", False):
            # Not repeatable: what was committed while we waited for the lock must be seen.
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
    """End the transaction that holds the writers' lock if its process says nothing any more.

    Only one that the server itself has waited for so long: one whose statement runs is left alone,
    however slow it is.
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
