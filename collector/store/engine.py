"""The database: opening it, reading from it, writing to it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, delete, false, inspect, make_url, select
from sqlalchemy.exc import ArgumentError

from collector.errors import StoreError, StoreUnavailableError
from collector.store import (
    engine_joins,
    engine_spans,
    faults,
    key_rates,
    leases,
    migrate,
    pair_counts,
    postgres,
    regressions,
    retention,
    sqlite_file,
    tables,
    upkeep_lease,
)
from collector.store.batch import Batch
from collector.store.clickhouse import AnalyticsConnection, ClickHouse, placement
from collector.store.clickhouse.writer import ClickHouseWriter
from collector.store.relational_writer import RelationalWriter
from collector.store.rollups import fold
from collector.store.turn import InterpreterTurn
from collector.store.writer import Writer

SUPPORTED = "sqlite:///path/to/file.db or postgresql://user:password@host/database"


class Store:
    """An open database, at the newest schema.

    Reads may run in many threads at once. Writes exclude each other, across processes too.
    """

    def __init__(
        self,
        engine: Engine,
        where: str,
        busy_timeout_s: float,
        clickhouse: ClickHouse | None = None,
    ) -> None:
        self._engine = engine
        self._clickhouse = clickhouse
        self._writer_of: Callable[[Any], Writer] = (  # Any: a connection of `_connect`
            RelationalWriter if clickhouse is None else ClickHouseWriter
        )
        self._busy_timeout_s = busy_timeout_s
        # Between threads of one process, for SQLite's own wait sleeps up to 100 ms at a time.
        self._writing = threading.Lock()
        self._where = where
        self._identity = sqlite_file.identity(engine.url)

    @classmethod
    def open(
        cls,
        database_url: str,
        *,
        analytics_url: str | None = None,
        relational_only: bool = False,
        busy_timeout_s: float = 5.0,
    ) -> "Store":
        """Open the database, creating it or bringing it to the newest schema where needed.

        With an `analytics_url`, what grows with traffic is in a ClickHouse beside it; who wants
        nothing of that opens it `relational_only`.

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
            # A writer that inserts into ClickHouse says nothing to PostgreSQL meanwhile.
            beside_clickhouse = analytics_url is not None or relational_only
            silent_s = None if beside_clickhouse else busy_timeout_s
            engine = postgres.create(url, busy_timeout_s=busy_timeout_s, silent_s=silent_s)
        try:
            # Where nothing is to be done, no lock is taken: another process may be writing.
            with faults.translated(where), engine.connect() as connection, connection.begin():
                current = migrate.is_current(connection)
            if not current:
                with _writing(engine.connect, where) as connection:
                    migrate.upgrade(connection, where=where)
                if url.drivername == "sqlite":
                    sqlite_file.use_write_ahead_log(engine)
            clickhouse = None
            if not relational_only:
                with faults.translated(where), engine.connect() as connection:
                    placement.check(connection, where, analytics=analytics_url is not None)
                clickhouse = None if analytics_url is None else ClickHouse.open(analytics_url)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, where, busy_timeout_s, clickhouse)

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
            self._connect() as connection,
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
        """Write the batch in one transaction; on return it is durable.

        Returns how many of its spans were new. A turn is taken only where the rows are written in
        this process, and neither for the lock of writers nor for the commit, which wait for others.

        Idempotent. Raises `StoreUnavailableError` where the database cannot be written now;
        nothing of the batch is stored then.
        """
        with self.transaction() as connection:
            with self._turn_of(turn):
                stored = self._writer_of(connection).write(batch)
            joined = engine_joins.any_joined(connection)
        if joined:
            # The batch is stored, whatever happens now; what is left here is the upkeep's.
            with suppress(StoreUnavailableError), self.transaction() as connection:
                engine_joins.finish_joins(connection)
        return stored

    def fold(self, *, at_most: int) -> int:
        """Fold pending rollup deltas into minutes and hours, and return how many."""
        with self.transaction() as connection:
            return fold.fold(connection, at_most=at_most)

    def count_pairs(self, *, at_most: int) -> int:
        """Count the pairs of generations that are not counted yet; return how many those were."""
        with self.transaction() as connection:
            return pair_counts.advance(connection, at_most=at_most)

    def order_regressions(self, *, at_most: int) -> int:
        """Put the pairs of scores that are not looked at yet in order; return how many those were.

        Those are scores, and generations that may have been judged before they were stored.
        """
        with self.transaction() as connection:
            return regressions.advance(connection, at_most=at_most)

    def promote_engine_spans(self, before_unix_s: int, *, at_most: int) -> int:
        """Make generations of engines' spans whose client sent none; return how many.

        Those of joins that a writer left unfinished are counted too.
        """
        with self.transaction() as connection:
            finished = engine_joins.finish_joins(connection)
            rows = engine_spans.take_overdue(connection, before_unix_s, at_most=at_most)
            if rows:
                pair_counts.add_late(connection, rows)
                self._writer_of(connection).write_generations(rows)
                leases.add_late(connection, rows)
            return finished + len(rows)

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
            with self._write() as connection:
                yield connection
        finally:
            self._writing.release()

    def _turn_of(self, turn: InterpreterTurn | None) -> AbstractContextManager[None]:
        elsewhere = self.is_shared or self._clickhouse is not None
        return nullcontext() if turn is None or elsewhere else turn.taken()

    def _connect(self) -> Connection:
        if self._clickhouse is None:
            return self._engine.connect()
        return AnalyticsConnection(self._engine, self._clickhouse)

    def _write(self) -> AbstractContextManager[Connection]:
        return _writing(self._connect, self._where)

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
        analytics = 0
        if self._clickhouse is not None:
            analytics = sum(size for _, size in self._clickhouse.sizes().values())
        return analytics + self._own_size_bytes()

    def _own_size_bytes(self) -> int:
        if self._engine.dialect.name == "postgresql":
            with self.read() as connection:
                return postgres.size_bytes(connection)
        return sqlite_file.size_bytes(self._engine.url)

    def close(self) -> None:
        """Close every connection; may be called twice."""
        self._engine.dispose()
        if self._clickhouse is not None:
            self._clickhouse.close()


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
def _writing(connect: Callable[[], Connection], where: str) -> Iterator[Connection]:
    with (
        faults.translated(where),
        connect().execution_options(writes=True) as connection,
        connection.begin(),
    ):
        yield connection
