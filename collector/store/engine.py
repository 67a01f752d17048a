"""The database: opening it, reading from it, writing to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, delete, false, make_url, select
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from collector.errors import StoreError, StoreUnavailableError
from collector.store import migrate, sqlite_file, tables
from collector.store.batch import Batch
from collector.store.writer import Writer

SUPPORTED = "sqlite:///path/to/file.db"


class Store:
    """An open database, at the newest schema.

    Reads may run in many threads at once. Writes exclude each other, across processes too.
    """

    def __init__(self, engine: Engine, where: str) -> None:
        self._engine = engine
        self._where = where
        self._writer = Writer(engine.dialect)
        self._identity = sqlite_file.identity(engine.url)

    @classmethod
    def open(cls, database_url: str, *, busy_timeout_s: float = 5.0) -> "Store":
        """Open the database, creating it or bringing it to the newest schema where needed.

        Raises `StoreError` for a URL that is not supported, for a file that is no database or
        not ours, and for one that cannot be written; such a file is left as it is.
        """
        url = _parse(database_url)
        where = url.database or database_url
        engine = sqlite_file.create(url, busy_timeout_s=busy_timeout_s)
        try:
            # Where nothing is to be done, no lock is taken: another process may be writing.
            with _translated(where), engine.connect() as connection, connection.begin():
                current = migrate.is_current(connection)
            if not current:
                with _writing(engine, where) as connection:
                    migrate.upgrade(connection, where=where)
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
        with _translated(self._where), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Give a connection whose writes are durable on leaving; it excludes every other writer.

        For what is written now and then: spans, scores and verdicts go through `write`. Raises
        `StoreUnavailableError` where the database cannot be written now.
        """
        with _writing(self._engine, self._where) as connection:
            yield connection

    def check(self) -> None:
        """Raise `StoreUnavailableError` unless the database can be read."""
        with self.read() as connection:
            connection.execute(select(tables.span.c.id).limit(1))

    def check_writable(self) -> None:
        """Raise `StoreUnavailableError` unless the database can be written."""
        with _writing(self._engine, self._where) as connection:
            connection.execute(delete(tables.span).where(false()))

    def write(self, batch: Batch) -> int:
        """Write the batch in one transaction; on return it is durable.

        Returns how many of its spans were new.

        Idempotent. Raises `StoreUnavailableError` where the database cannot be written now;
        nothing of the batch is stored then.
        """
        # SQLite would go on writing into a file that was deleted, and call it durable.
        if sqlite_file.identity(self._engine.url) != self._identity:
            raise StoreUnavailableError(
                f"{self._where}: was deleted or replaced; put it back, or restart to begin anew"
            )
        with _writing(self._engine, self._where) as connection:
            return self._writer.write(connection, batch)

    def size_bytes(self) -> int:
        """Return the size of the database's files, the log of recent writes included."""
        files = (Path(f"{self._engine.url.database}{suffix}") for suffix in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def close(self) -> None:
        """Close every connection; may be called twice."""
        self._engine.dispose()


def _parse(database_url: str) -> URL:
    try:
        url = make_url(database_url)
    except ArgumentError as exc:
        raise StoreError(f"{database_url!r}: is no database URL; wanted {SUPPORTED}") from exc
    if url.drivername != "sqlite":
        raise StoreError(
            f"{url.drivername}://…: is not a supported kind of database; wanted {SUPPORTED}"
        )
    return url


@contextmanager
def _writing(engine: Engine, where: str) -> Iterator[Connection]:
    """Give a connection in a transaction that excludes every other writer."""
    with (
        _translated(where),
        engine.connect().execution_options(writes=True) as connection,
        connection.begin(),
    ):
        yield connection


@contextmanager
def _translated(where: str) -> Iterator[None]:
    """Raise the store's own errors instead of SQLAlchemy's, which are bugs where they remain."""
    try:
        yield
    except PoolTimeoutError as exc:
        raise StoreUnavailableError(f"{where}: every connection is in use; try again") from exc
    except SQLAlchemyError as exc:
        # Only these two mean "not now"; their siblings (integrity, programming, data) mean a bug.
        if type(exc) not in (OperationalError, DatabaseError):
            raise
        cause = str(getattr(exc, "orig", None) or exc).splitlines()[0]
        raise StoreUnavailableError(f"{where}: {cause}; {_remedy(cause)}") from exc


def _remedy(cause: str) -> str:
    remedies = {
        "locked": "another process is writing to it: try again",
        "full": "free some space",
        "readonly": "make the file and its folder writable",
        "unable to open": "check that the file and its folder can be written",
        "malformed": "restore it from a backup",
        "not a database": "name another file, or restore it from a backup",
    }
    return next((remedies[word] for word in remedies if word in cause), "check disk and file")
