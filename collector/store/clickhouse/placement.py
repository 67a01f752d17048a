"""Check of where a database's spans are: in itself or in ClickHouse, never in both."""

from sqlalchemy import Connection, select

from collector.errors import StoreError
from collector.store import progress
from collector.store.clickhouse import watermarks
from collector.store.tables import span


def check(connection: Connection, where: str, *, analytics: bool) -> None:
    """Raise `StoreError` if existing spans are not where this configuration reads them."""
    if analytics and connection.scalar(select(span.c.id).limit(1)) is not None:
        raise StoreError(
            f"{where}: holds spans itself, which nobody would see beside a ClickHouse; "
            "name a new database with DRAFTGATE_DATABASE_URL, or unset DRAFTGATE_ANALYTICS_URL"
        )
    if not analytics and progress.read(connection, watermarks.COMMITTED):
        raise StoreError(
            f"{where}: has its spans in a ClickHouse; set DRAFTGATE_ANALYTICS_URL to that one"
        )
