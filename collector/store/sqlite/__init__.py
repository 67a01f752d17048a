"""The store in an SQLite file."""

from collector.store.sqlite.database import SqliteDatabase

__all__ = ["SqliteDatabase"]
