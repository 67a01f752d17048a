"""A database that the store is in; which kind it is, is decided once, when the store opens."""

from abc import ABC, abstractmethod

from sqlalchemy import Connection, Engine

from collector.store.bulk import RelationalBulk
from collector.store.reader import Reader, StoreConnection
from collector.store.writer import Writer


class Database(ABC):
    """One kind of database, as far as reads and writes need not differ for it."""

    where: str
    """Its name in messages, without a password."""
    engine: Engine
    is_shared: bool
    """Whether several collectors may serve it at once."""
    rows_are_made_here: bool
    """Whether this process does the work of writing, and not a server."""

    @abstractmethod
    def connect(self) -> StoreConnection:
        """Return a connection that has its reader."""

    @abstractmethod
    def writer(self, connection: StoreConnection) -> Writer:
        """Return a writer in the transaction of a connection of `connect`."""

    @abstractmethod
    def check_in_place(self) -> None:
        """Raise `StoreUnavailableError` if the database was taken away while it was open."""

    @abstractmethod
    def vacuum(self) -> None:
        """Give deleted rows' space back to the system, and renew the planner's statistics."""

    @abstractmethod
    def size_bytes(self) -> int:
        """Return its size on disk."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection; may be called twice."""


class RelationalDatabase(Database):
    """A database that has transactions, and all tables."""

    @abstractmethod
    def opened(self, *, upgraded: bool) -> None:
        """Set up what a database of ours needs, once its schema is the newest."""

    @abstractmethod
    def reader(self, connection: Connection) -> Reader:
        """Return a reader in the connection's transaction."""

    @abstractmethod
    def bulk(self, connection: Connection) -> RelationalBulk:
        """Return what takes many rows on the connection."""

    def connect(self) -> StoreConnection:
        """Return a connection that has its reader."""
        return StoreConnection(self.engine, self.reader)

    def close(self) -> None:
        """Close every connection; may be called twice."""
        self.engine.dispose()
