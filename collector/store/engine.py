"""The database: opening it, reading from it, writing to it."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL, Connection, Engine, delete, false, make_url, select
from sqlalchemy.exc import ArgumentError

from collector.errors import StoreError, StoreUnavailableError
from collector.store import faults, migrate, postgres, sqlite_file, tables
from collector.store.batch import Batch
from collector.store.rollups import fold
from collector.store.writer import Writer

SUPPORTED = "sqlite:///path/to/file.db or postgresql://user:password@host/database"


class Store:
    """An open database, at the newest schema.

    Reads may run in many threads at once. Writes exclude each other, across processes too.
    """

    def __init__(self, engine: Engine, where: str) -> None:
        self._engine = engine
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
            engine = postgres.create(url, busy_timeout_s=busy_timeout_s)
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
        return cls(engine, where)

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
        with _writing(self._engine, self._where) as connection:
            yield connection

    def size_bytes(self) -> int:
        """Return the size of the database, the log of recent writes of an SQLite file included."""
        if self._engine.dialect.name == "postgresql":
            with self.read() as connection:
                return postgres.size_bytes(connection)
        return sqlite_file.size_bytes(self._engine.url)

    def close(self) -> None:
        """Close every connection; may be called twice."""
        self._engine.dispose()


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
