"""Interface of the databases that can hold the store; the kind is chosen when the store opens."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from sqlalchemy import Connection, Engine

from collector.store.bulk import RelationalBulk
from collector.store.reader import Reader, StoreConnection
from collector.store.writer import Writer


class Database(ABC):
    """One kind of database: its connections, writer and maintenance."""

    where: str
    """The database's name in messages, without a password."""
    engine: Engine
    is_shared: bool
    """Whether several collectors may use the database at once."""
    rows_are_made_here: bool
    """Whether this process itself does the work of writing, as with SQLite."""

    @abstractmethod
    def connect(self) -> StoreConnection:
        """Return a connection with this database's reader."""

    @abstractmethod
    def writer(self, connection: StoreConnection) -> Writer:
        """Return a writer in the transaction of a connection from `connect`."""

    @abstractmethod
    def check_in_place(self) -> None:
        """Raise `StoreUnavailableError` if the database was deleted or replaced while open."""

    @abstractmethod
    def vacuum(self) -> None:
        """Return the space of deleted rows to the system and refresh the planner's statistics."""

    @abstractmethod
    def size_bytes(self) -> int:
        """Return the database's size on disk."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection; may be called twice."""


class RelationalDatabase(Database):
    """A database with transactions that holds all tables."""

    reader: Callable[[Connection], Reader]
    bulk: Callable[[Connection], RelationalBulk]

    @abstractmethod
    def on_open(self, *, upgraded: bool) -> None:
        """Finish opening: called once the schema is at the newest revision."""

    def connect(self) -> StoreConnection:
        """Return a connection with this database's reader."""
        return StoreConnection(self.engine, self.reader)

    def close(self) -> None:
        """Close every connection; may be called twice."""
        self.engine.dispose()
