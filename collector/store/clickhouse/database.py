"""The store in a ClickHouse and a relational database beside it."""

from collector.store.clickhouse.connection import AnalyticsConnection
from collector.store.clickhouse.reader import ClickHouseReader
from collector.store.clickhouse.server import ClickHouse
from collector.store.clickhouse.writer import ClickHouseWriter
from collector.store.database import Database, RelationalDatabase
from collector.store.reader import StoreConnection


class ClickHouseDatabase(Database):
    """What grows with traffic is in ClickHouse, all else in the database beside it."""

    rows_are_made_here = False

    def __init__(self, beside: RelationalDatabase, clickhouse: ClickHouse) -> None:
        self._beside = beside
        self.clickhouse = clickhouse
        self.where = beside.where
        self.engine = beside.engine
        self.is_shared = beside.is_shared

    def connect(self) -> AnalyticsConnection:
        """Return a connection that asks each of the two for its tables."""
        return AnalyticsConnection(self.engine, self._reader, self.clickhouse)

    def _reader(self, connection: AnalyticsConnection) -> ClickHouseReader:
        return ClickHouseReader(connection, self._beside.reader(connection))

    def writer(self, connection: StoreConnection) -> ClickHouseWriter:
        """Return a writer in the connection's transaction."""
        if not isinstance(connection, AnalyticsConnection):
            raise TypeError("a writer of ClickHouse needs a connection that has one")
        return ClickHouseWriter(connection, self._beside.bulk(connection))

    def check_in_place(self) -> None:
        """Raise `StoreUnavailableError` if the database beside it was taken away."""
        self._beside.check_in_place()

    def vacuum(self) -> None:
        """Vacuum the database beside it; ClickHouse merges its parts by itself."""
        self._beside.vacuum()

    def size_bytes(self) -> int:
        """Return the size of both."""
        there = sum(size for _, size in self.clickhouse.sizes().values())
        return there + self._beside.size_bytes()

    def close(self) -> None:
        """Close every connection; may be called twice."""
        self._beside.close()
        self.clickhouse.close()
