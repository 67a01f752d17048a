"""Bulk inserts: one interface, implemented by the fastest method of each database."""

from collections.abc import Sequence
from typing import Any, Protocol

from sqlalchemy import Table

Values = tuple[Any, ...]  # Any: one value per column, each of its column's type


class Bulk(Protocol):
    """Bulk inserts into one kind of database, in the writer's transaction."""

    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert rows with a value or None for each of the columns."""

    def insert_sparse(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows given as column-to-value mappings; missing columns are NULL."""

    def insert_new(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> int:
        """Insert the rows whose primary key is not stored yet; return how many were inserted."""


class RelationalBulk(Bulk, Protocol):
    """Bulk inserts into a database with transactions and primary keys."""

    def insert_few_new(self, table: Table, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert the rows whose primary key, one integer, is not stored yet.

        For dozens of rows of which few are new.
        """
