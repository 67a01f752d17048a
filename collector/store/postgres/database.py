"""The store in a PostgreSQL database: its connections, reader and writer."""

from typing import Any

from sqlalchemy import URL

from collector.store import faults
from collector.store.database import RelationalDatabase
from collector.store.postgres import server
from collector.store.postgres.bulk import PostgresBulk
from collector.store.postgres.reader import PostgresReader
from collector.store.postgres.writer import PostgresWriter


class PostgresDatabase(RelationalDatabase):
    """A PostgreSQL database, which must exist already."""

    is_shared = True
    rows_are_made_here = False
    reader = PostgresReader
    bulk = PostgresBulk
    writer = PostgresWriter

    def __init__(self, url: URL, *, busy_timeout_s: float, silent_s: float | None) -> None:
        self.where = url.render_as_string(hide_password=True)
        self.engine = server.create(url, busy_timeout_s=busy_timeout_s, silent_s=silent_s)

    def on_open(self, *, upgraded: bool) -> None:
        """Do nothing: the server's settings belong to its operator."""

    def check_in_place(self) -> None:
        """Do nothing: a deleted database refuses connections."""

    def vacuum(self) -> None:
        """Return the space of deleted rows to the system and refresh the planner's statistics."""
        with faults.translated(self.where):
            connection = self.engine.raw_connection()
            try:
                driver: Any = connection.driver_connection  # Any: psycopg's
                driver.autocommit = True  # PostgreSQL cannot vacuum in a transaction
                driver.execute("VACUUM ANALYZE")
            finally:
                connection.invalidate()

    def size_bytes(self) -> int:
        """Return the size of the database."""
        with faults.translated(self.where), self.engine.connect() as connection:
            return server.size_bytes(connection)
