"""The store in a PostgreSQL database, which several collectors may share."""

from collector.store.postgres.database import PostgresDatabase

__all__ = ["PostgresDatabase"]
