"""Many rows into one table, as each kind of database takes them fastest."""

from collections.abc import Sequence
from typing import Any, Protocol

from sqlalchemy import Table

Values = tuple[Any, ...]  # Any: one value a column, each of its column's type


class Bulk(Protocol):
    """How one kind of database takes rows; the connection is in the writer's transaction."""

    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert rows that have a value, or None, for each of the columns."""

    def insert_sparse(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows of which each names its columns; the others are NULL."""

    def insert_new(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> int:
        """Insert the rows whose primary key is not there yet, and return how many they were."""


class RelationalBulk(Bulk, Protocol):
    """That of a database with transactions and keys."""

    def insert_few_new(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert the rows whose key, one integer, is not there: dozens, of which few are new."""
