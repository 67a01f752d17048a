"""PostgreSQL: how a connection is set up."""

from typing import Any

from psycopg.types.string import StrDumperUnknown
from sqlalchemy import URL, Connection, Engine, create_engine, event, text

# Any process that writes takes this lock first, so that ids are committed in their order and a
# reader that pages by id misses none.
_WRITER_LOCK = 0x4452_4146_5447_4154  # "DRAFTGAT"
_CONNECT_TIMEOUT_S = 5


class _TextDumper(StrDumperUnknown):
    """Writes text as PostgreSQL can hold it, parameters and COPY alike: without the character 0."""

    def dump(self, obj: str) -> Any:  # Any: bytes, or a buffer of them
        return super().dump(obj.replace("\0", "\ufffd"))


def create(url: URL, *, busy_timeout_s: float) -> Engine:
    """Return an engine on a PostgreSQL database; nothing is opened yet."""
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
        connection.commit()

    def on_begin(connection: Connection) -> None:
        if connection.get_execution_options().get("writes", False):
            # Not repeatable: what was committed while we waited for the lock must be seen.
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITER_LOCK})")

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
    return engine


def size_bytes(connection: Connection) -> int:
    """Return the size of the database."""
    return int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0)
