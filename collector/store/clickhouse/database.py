"""The store in a ClickHouse and a relational database beside it."""

from collector.store.clickhouse.connection import AnalyticsConnection
from collector.store.clickhouse.reader import ClickHouseReader
from collector.store.clickhouse.server import ClickHouse
from collector.store.clickhouse.writer import ClickHouseWriter
from collector.store.database import Database, RelationalDatabase
from collector.store.reader import StoreConnection


class ClickHouseDatabase(Database):
    """ClickHouse with the tables that grow with traffic, and a relational database with others."""

    rows_are_made_here = False

    def __init__(self, beside: RelationalDatabase, clickhouse: ClickHouse) -> None:
        self._beside = beside
        self.clickhouse = clickhouse
        self.where = beside.where
        self.engine = beside.engine
        self.is_shared = beside.is_shared

    def connect(self) -> AnalyticsConnection:
        """Return a connection that routes each statement to the database with its tables."""
        return AnalyticsConnection(self.engine, self._reader, self.clickhouse)

    def _reader(self, connection: AnalyticsConnection) -> ClickHouseReader:
        return ClickHouseReader(connection, self._beside.reader(connection))

    def writer(self, connection: StoreConnection) -> ClickHouseWriter:
        """Return a writer in the connection's transaction."""
        if not isinstance(connection, AnalyticsConnection):
            raise TypeError("a writer of ClickHouse needs a connection that has one")
        return ClickHouseWriter(connection, self._beside.bulk(connection))

    def check_in_place(self) -> None:
        """Raise `StoreUnavailableError` if the relational database was deleted or replaced."""
        self._beside.check_in_place()

    def vacuum(self) -> None:
        """Vacuum the relational database; ClickHouse merges its parts by itself."""
        self._beside.vacuum()

    def size_bytes(self) -> int:
        """Return the size of both databases together."""
        there = sum(size for _, size in self.clickhouse.sizes().values())
        return there + self._beside.size_bytes()

    def close(self) -> None:
        """Close every connection; may be called twice."""
        self._beside.close()
        self.clickhouse.close()
