"""The database: opening it, reading from it, writing to it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, delete, false, inspect, make_url, select
from sqlalchemy.exc import ArgumentError

from collector.errors import StoreError, StoreUnavailableError
from collector.store import (
    engine_spans,
    faults,
    key_rates,
    leases,
    migrate,
    pair_counts,
    postgres,
    retention,
    sqlite_file,
    tables,
    upkeep_lease,
)
from collector.store.batch import Batch
from collector.store.rollups import fold
from collector.store.writer import Writer

SUPPORTED = "sqlite:///path/to/file.db or postgresql://user:password@host/database"


class Store:
    """An open database, at the newest schema.

    Reads may run in many threads at once. Writes exclude each other, across processes too.
    """

    def __init__(self, engine: Engine, where: str, busy_timeout_s: float) -> None:
        self._engine = engine
        self._busy_timeout_s = busy_timeout_s
        # Between threads of one process, for SQLite's own wait sleeps up to 100 ms at a time.
        self._writing = threading.Lock()
        self._where = where
        self._identity = sqlite_file.identity(engine.url)

    @classmethod
    def open(cls, database_url: str, *, busy_timeout_s: float = 5.0) -> "Store":
        """Open the database, creating it or bringing it to the newest schema where needed.

        Raises `StoreError` for a URL that is not supported, for a file that is no database or
        not ours, and for one that cannot be written; such a file is left as it is. A PostgreSQL
        database must exist already.
        """
        url = _parse(database_url)
        if url.drivername == "sqlite":
            where = url.database or database_url
            engine = sqlite_file.create(url, busy_timeout_s=busy_timeout_s)
        else:
            where = url.render_as_string(hide_password=True)
            engine = postgres.create(url, busy_timeout_s=busy_timeout_s, silent_s=busy_timeout_s)
        try:
            # Where nothing is to be done, no lock is taken: another process may be writing.
            with faults.translated(where), engine.connect() as connection, connection.begin():
                current = migrate.is_current(connection)
            if not current:
                with _writing(engine, where) as connection:
                    migrate.upgrade(connection, where=where)
                if url.drivername == "sqlite":
                    sqlite_file.use_write_ahead_log(engine)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, where, busy_timeout_s)

    @property
    def engine(self) -> Engine:
        """The engine underneath, for maintenance and tests."""
        return self._engine

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one consistent state of the database.

        Raises `StoreUnavailableError` where the database cannot be read now.
        """
        with (
            faults.translated(self._where),
            self._engine.connect() as connection,
            connection.begin(),
        ):
            yield connection

    def check(self) -> None:
        """Raise `StoreUnavailableError` unless the database can be read."""
        with self.read() as connection:
            connection.execute(select(tables.span.c.id).limit(1))

    def check_writable(self) -> None:
        """Raise `StoreUnavailableError` unless the database can be written."""
        with _writing(self._engine, self._where) as connection:
            connection.execute(delete(tables.series).where(false()))

    def write(self, batch: Batch) -> int:
        """Write the batch in one transaction; on return it is durable.

        Returns how many of its spans were new.

        Idempotent. Raises `StoreUnavailableError` where the database cannot be written now;
        nothing of the batch is stored then.
        """
        with self.transaction() as connection:
            return Writer(connection).write(batch)

    def fold(self, *, at_most: int) -> int:
        """Fold pending rollup deltas into minutes and hours, and return how many."""
        with self.transaction() as connection:
            return fold.fold(connection, at_most=at_most)

    def count_pairs(self, *, at_most: int) -> int:
        """Count the pairs of generations that are not counted yet; return how many those were."""
        with self.transaction() as connection:
            return pair_counts.advance(connection, at_most=at_most)

    def promote_engine_spans(self, before_unix_s: int, *, at_most: int) -> int:
        """Make generations of engines' spans whose client sent none; return how many."""
        with self.transaction() as connection:
            rows = engine_spans.take_overdue(connection, before_unix_s, at_most=at_most)
            if rows:
                pair_counts.add_late(connection, rows)
                Writer(connection).write_generations(rows)
                leases.add_late(connection, rows)
            return len(rows)

    def take_upkeep(self, holder: str, for_s: float) -> bool:
        """Say whether the holder is the one that does the upkeep from now on, for so long."""
        with self.read() as connection:
            if upkeep_lease.is_anothers(connection, holder):
                return False
        with self.transaction() as connection:
            return upkeep_lease.take(connection, holder, for_s)

    def leave_upkeep(self, holder: str) -> None:
        """Let another do the upkeep."""
        with self.transaction() as connection:
            upkeep_lease.leave(connection, holder)

    @property
    def is_shared(self) -> bool:
        """Whether several collectors may serve the database at once."""
        return self._engine.dialect.name == "postgresql"

    def take_token(self, key_id: str, rate_per_s: float) -> int:
        """Take a token of a key from the bucket that all collectors share; 0, or how long to wait.

        Of a database that `is_shared`.
        """
        with (
            faults.translated(self._where),
            self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        ):
            return key_rates.take(connection, key_id, rate_per_s)

    def retain(self, keep: retention.Keep, now_unix_s: float) -> int:
        """Delete a piece of what is too old, and return how much; 0 where nothing is left."""
        with self.transaction() as connection:
            return retention.step(connection, keep, now_unix_s)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Give a connection whose writes are durable on leaving; it excludes every other writer.

        Raises `StoreUnavailableError` where the database cannot be written now.
        """
        # SQLite would go on writing into a file that was deleted, and call it durable.
        if sqlite_file.identity(self._engine.url) != self._identity:
            raise StoreUnavailableError(
                f"{self._where}: was deleted or replaced; put it back, or restart to begin anew"
            )
        if not self._writing.acquire(timeout=self._busy_timeout_s):
            raise StoreUnavailableError(f"{self._where}: is being written to; try again")
        try:
            with _writing(self._engine, self._where) as connection:
                yield connection
        finally:
            self._writing.release()

    def vacuum(self) -> None:
        """Give deleted rows' space back to the system, and renew the planner's statistics."""
        statement = "VACUUM ANALYZE" if self._engine.dialect.name == "postgresql" else "VACUUM"
        with faults.translated(self._where):
            connection = self._engine.raw_connection()
            try:
                # Outside of a transaction, which neither database would allow.
                driver: Any = connection.driver_connection  # Any: of either database
                if self._engine.dialect.name == "postgresql":
                    driver.autocommit = True
                driver.execute(statement)
                if statement == "VACUUM":
                    driver.execute("PRAGMA optimize")
                    driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                connection.invalidate()

    def size_bytes(self) -> int:
        """Return the size of the database, the log of recent writes of an SQLite file included."""
        if self._engine.dialect.name == "postgresql":
            with self.read() as connection:
                return postgres.size_bytes(connection)
        return sqlite_file.size_bytes(self._engine.url)

    def close(self) -> None:
        """Close every connection; may be called twice."""
        self._engine.dispose()


def exists(database_url: str) -> bool:
    """Say whether the URL names a database of ours, whatever its schema; raises `StoreError`."""
    url = _parse(database_url)
    if url.drivername == "sqlite":
        return Path(str(url.database)).exists()
    engine = postgres.create(url, busy_timeout_s=5.0)
    try:
        with faults.translated(url.render_as_string(hide_password=True)), engine.connect() as one:
            return inspect(one).has_table("alembic_version")
    finally:
        engine.dispose()


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
def _writing(engine: Engine, where: str) -> Iterator[Connection]:
    with (
        faults.translated(where),
        engine.connect().execution_options(writes=True) as connection,
        connection.begin(),
    ):
        yield connection
