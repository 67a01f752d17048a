"""The database: opening it, reading from it, writing to it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Self, TypeVar

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    RootTransaction,
    delete,
    false,
    inspect,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, DBAPIError

from collector.errors import StoreError, StoreUnavailableError
from collector.store import engine_spans, faults, key_rates, migrate, pair_counts, tables
from collector.store.batch import Batch
from collector.store.clickhouse import ClickHouse, ClickHouseDatabase, placement
from collector.store.database import Database, RelationalDatabase
from collector.store.postgres import PostgresDatabase
from collector.store.reader import StoreConnection
from collector.store.sqlite import SqliteDatabase
from collector.store.turn import InterpreterTurn
from collector.store.upkeep import leases, regressions, retention, upkeep_lease

C = TypeVar("C", bound=Connection)
SUPPORTED = "sqlite:///path/to/file.db or postgresql://user:password@host/database"


class Store:
    """An open database at the newest schema; a context manager.

    Many threads may read at once. Only one transaction writes at a time, across processes too.
    """

    def __init__(self, database: Database, busy_timeout_s: float) -> None:
        self._database = database
        self._busy_timeout_s = busy_timeout_s
        # Serializes the threads of this process: SQLite's own wait sleeps up to 100 ms at a time.
        self._writing = threading.Lock()

    @classmethod
    def open(
        cls,
        database_url: str,
        *,
        analytics_url: str | None = None,
        relational_only: bool = False,
        busy_timeout_s: float = 5.0,
    ) -> "Store":
        """Open the database; create it or upgrade its schema if needed.

        With an `analytics_url`, the tables that grow with traffic are in ClickHouse and the others
        in `database_url`; `relational_only` opens only the latter.

        Raises `StoreError` for a URL that is not supported, for a file that is no database or
        not Draftgate's, and for one that cannot be written; such a file is left unchanged. A
        PostgreSQL database must exist already.
        """
        # While a writer inserts into ClickHouse, its PostgreSQL connection is silent.
        beside_clickhouse = analytics_url is not None or relational_only
        beside = _relational(_parse(database_url), busy_timeout_s, may_be_silent=beside_clickhouse)
        try:
            _upgrade(beside)
            database: Database = beside
            if not relational_only:
                with faults.translated(beside.where), beside.engine.connect() as connection:
                    placement.check(connection, beside.where, analytics=analytics_url is not None)
                if analytics_url is not None:
                    database = ClickHouseDatabase(beside, ClickHouse.open(analytics_url))
        except BaseException:
            beside.close()
            raise
        return cls(database, busy_timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def engine(self) -> Engine:
        """The SQLAlchemy engine, for maintenance and tests."""
        return self._database.engine

    @contextmanager
    def read(self) -> Iterator[StoreConnection]:
        """Yield a connection that sees one consistent state of the database.

        Raises `StoreUnavailableError` if the database cannot be read now.
        """
        with (
            faults.translated(self._database.where),
            closing(self._database.connect()) as connection,
            connection.begin(),
        ):
            yield connection

    def check(self) -> None:
        """Raise `StoreUnavailableError` unless the database can be read, ClickHouse too."""
        with self.read() as connection:
            connection.execute(select(tables.span.c.id).limit(1))

    def check_writable(self) -> None:
        """Raise `StoreUnavailableError` unless the database can be written."""
        with self._write() as connection:
            connection.execute(delete(tables.series).where(false()))

    def write(self, batch: Batch, turn: InterpreterTurn | None = None) -> int:
        """Write the batch in one transaction and return how many of its spans were new.

        On return the batch is durable. Idempotent. `turn` is held only while rows are written, and
        only if this process writes them itself (SQLite); it is not held while waiting for the write
        lock or the commit. Raises `StoreUnavailableError` if the database cannot be written now;
        nothing of the batch is stored then.
        """
        with self.transaction() as connection:
            writer = self._database.writer(connection)
            with self._turn_of(turn):
                stored = writer.write(batch)
            joined = writer.any_joined()
        if joined:
            # The batch is stored, even if this fails; upkeep then finishes the joins.
            with suppress(StoreUnavailableError), self.transaction() as connection:
                self._database.writer(connection).finish_joins()
        return stored

    def fold(self, *, at_most: int) -> int:
        """Fold pending rollup deltas into minutes and hours; return how many were folded."""
        with self.transaction() as connection:
            return self._database.writer(connection).fold(at_most=at_most)

    def count_pairs(self, *, at_most: int) -> int:
        """Count the pairs of the next uncounted generations; return how many generations."""
        with self.transaction() as connection:
            return pair_counts.advance(connection, at_most=at_most)

    def order_regressions(self, *, at_most: int) -> int:
        """Update regressions from the next scores and generations; return how many were processed.

        Generations are processed too because a score may be stored before its generation.
        """
        with self.transaction() as connection:
            return regressions.advance(connection, at_most=at_most)

    def promote_engine_spans(self, before_unix_s: int, *, at_most: int) -> int:
        """Turn engine spans without a client span into generations; return how many.

        Also finishes joins that a writer left unfinished, and includes them in the count.
        """
        with self.transaction() as connection:
            writer = self._database.writer(connection)
            finished = writer.finish_joins()
            rows = engine_spans.take_overdue(connection, before_unix_s, at_most=at_most)
            if rows:
                pair_counts.add_late(connection, rows)
                writer.write_generations(rows)
                leases.add_late(connection, rows)
            return finished + len(rows)

    def take_upkeep(self, holder: str, for_s: float) -> bool:
        """Take or renew the upkeep lease for `for_s` seconds; return whether the holder has it."""
        with self.read() as connection:
            if upkeep_lease.is_held_by_other(connection, holder):
                return False
        with self.transaction() as connection:
            return upkeep_lease.take(connection, holder, for_s)

    def release_upkeep(self, holder: str) -> None:
        """Release the upkeep lease."""
        with self.transaction() as connection:
            upkeep_lease.release(connection, holder)

    @property
    def is_shared(self) -> bool:
        """Whether several collectors may use the database at once."""
        return self._database.is_shared

    def take_token(self, key_id: str, rate_per_s: float) -> int:
        """Take a token from the key's bucket; return 0, or how many seconds to wait for one.

        All collectors share the bucket. Only for a database that `is_shared`.
        """
        with (
            faults.translated(self._database.where),
            self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        ):
            return key_rates.take(connection, key_id, rate_per_s)

    def redaction_key(self) -> bytes:
        """Return the random key that the store was made with."""
        secret = tables.secret
        statement = select(secret.c.value).where(secret.c.name == "redaction")
        with self.read() as connection:
            return bytes(connection.execute(statement).scalar_one())

    def retain(self, keep: retention.Keep, now_unix_s: float) -> int:
        """Delete one chunk of expired rows and return how many; 0 if none are left."""
        with self.transaction() as connection:
            return retention.step(self._database.writer(connection), keep, now_unix_s)

    @contextmanager
    def transaction(self) -> Iterator[StoreConnection]:
        """Yield a connection whose writes are durable on exit; it excludes every other writer.

        Raises `StoreUnavailableError` if the database cannot be written now.
        """
        self._database.check_in_place()
        if not self._writing.acquire(timeout=self._busy_timeout_s):
            raise StoreUnavailableError(f"{self._database.where}: is being written to; try again")
        try:
            with self._write() as connection:
                yield connection
        finally:
            self._writing.release()

    def vacuum(self) -> None:
        """Return the space of deleted rows to the system and refresh the planner's statistics."""
        self._database.vacuum()

    def size_bytes(self) -> int:
        """Return the size of the database, including an SQLite file's write-ahead log."""
        return self._database.size_bytes()

    def close(self) -> None:
        """Close every connection; may be called twice."""
        self._database.close()

    def _turn_of(self, turn: InterpreterTurn | None) -> AbstractContextManager[None]:
        if turn is None or not self._database.rows_are_made_here:
            return nullcontext()
        return turn.taken()

    def _write(self) -> AbstractContextManager[StoreConnection]:
        return _writing(self._database.connect, self._database.where)


def exists(database_url: str) -> bool:
    """Return whether the URL names a Draftgate database of any schema; raises `StoreError`."""
    url = _parse(database_url)
    if url.drivername == "sqlite":
        return Path(str(url.database)).exists()
    database = _relational(url, 5.0, may_be_silent=True)
    try:
        with faults.translated(database.where), database.engine.connect() as one:
            return inspect(one).has_table("alembic_version")
    finally:
        database.close()


def _relational(url: URL, busy_timeout_s: float, *, may_be_silent: bool) -> RelationalDatabase:
    if url.drivername == "sqlite":
        return SqliteDatabase(url, busy_timeout_s=busy_timeout_s)
    silent_s = None if may_be_silent else busy_timeout_s
    return PostgresDatabase(url, busy_timeout_s=busy_timeout_s, silent_s=silent_s)


def _upgrade(database: RelationalDatabase) -> None:
    """Upgrade the schema to the newest revision; take no write lock if it already is."""
    engine, where = database.engine, database.where
    with faults.translated(where), engine.connect() as connection, connection.begin():
        current = migrate.is_current(connection)
    if not current:
        with _writing(engine.connect, where) as connection:
            migrate.upgrade(connection, where=where)
    database.on_open(upgraded=not current)


def _parse(database_url: str) -> URL:
    try:
        url = make_url(database_url)
    except ArgumentError as exc:
        raise StoreError(f"{database_url!r}: is no database URL; wanted {SUPPORTED}") from exc
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername != "sqlite":
        raise StoreError(
            f"{url.drivername}://…: is not a supported kind of database; wanted {SUPPORTED}"
        )
    return url


@contextmanager
def _writing(connect: Callable[[], C], where: str) -> Iterator[C]:
    with faults.translated(where), closing(connect()) as connection:
        connection.execution_options(writes=True)
        with _begun(connection):
            yield connection


def _begun(connection: Connection) -> RootTransaction:
    """Begin a transaction, on a new connection if this one turns out to be broken."""
    try:
        return connection.begin()
    except DBAPIError as exc:
        if not exc.connection_invalidated:
            raise
        return connection.begin()
