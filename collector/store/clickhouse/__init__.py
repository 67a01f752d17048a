"""ClickHouse for the tables that grow with traffic, beside a relational database for the others.

The relational database has the tables that need transactions: rollouts' series, verdicts, switches,
watches, keys, waiting engine spans, and `progress`. ClickHouse has no transactions, so watermarks
in `progress`, which are committed last, say which of its rows are visible: readers ignore rows
beyond them (`clickhouse.watermarks`). The relational database's write lock serializes the writers.
"""

from collector.store.clickhouse.connection import AnalyticsConnection
from collector.store.clickhouse.database import ClickHouseDatabase
from collector.store.clickhouse.server import ClickHouse

__all__ = ["AnalyticsConnection", "ClickHouse", "ClickHouseDatabase"]
