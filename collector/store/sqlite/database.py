"""The store in an SQLite file: its connections, reader and writer."""

from sqlalchemy import URL

from collector.errors import StoreUnavailableError
from collector.store import faults
from collector.store.database import RelationalDatabase
from collector.store.sqlite import file
from collector.store.sqlite.bulk import SqliteBulk
from collector.store.sqlite.reader import SqliteReader
from collector.store.sqlite.writer import SqliteWriter


class SqliteDatabase(RelationalDatabase):
    """An SQLite file, used by one collector."""

    is_shared = False
    rows_are_made_here = True
    reader = SqliteReader
    bulk = SqliteBulk
    writer = SqliteWriter

    def __init__(self, url: URL, *, busy_timeout_s: float) -> None:
        self.where = str(url.database)
        self.engine = file.create(url, busy_timeout_s=busy_timeout_s)
        self._identity: tuple[int, int] | None = None  # set once it is open

    def on_open(self, *, upgraded: bool) -> None:
        """Switch an upgraded file to write-ahead logging, and remember the file's identity."""
        if upgraded:
            file.use_write_ahead_log(self.engine)
        self._identity = file.identity(self.engine.url)

    def check_in_place(self) -> None:
        """Raise `StoreUnavailableError` if the file was deleted or replaced.

        SQLite itself would continue to write into a deleted file and report success.
        """
        if file.identity(self.engine.url) != self._identity:
            raise StoreUnavailableError(
                f"{self.where}: was deleted or replaced; put it back, or restart to begin anew"
            )

    def vacuum(self) -> None:
        """Rewrite the file without deleted rows, and refresh the planner's statistics."""
        with faults.translated(self.where):
            connection = self.engine.raw_connection()
            try:
                for statement in ("VACUUM", "PRAGMA optimize", "PRAGMA wal_checkpoint(TRUNCATE)"):
                    connection.driver_connection.execute(statement)  # type: ignore[union-attr]  # untyped
            finally:
                connection.invalidate()

    def size_bytes(self) -> int:
        """Return the size of the file and its write-ahead log."""
        return file.size_bytes(self.engine.url)
