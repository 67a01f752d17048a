"""ClickHouse as the store of all that grows with traffic, beside a relational database.

The relational database keeps what must change together and at once: rollouts' series, verdicts,
switches, watches, keys, what waits for its client's span, and `progress`. ClickHouse has no
transactions, so what counts there is told by marks in `progress`, which are committed last: rows
beyond them are in nobody's sight (`clickhouse.marks`). The relational database's lock orders the
writers.
"""

from collector.store.clickhouse.connection import AnalyticsConnection
from collector.store.clickhouse.database import ClickHouseDatabase
from collector.store.clickhouse.server import ClickHouse

__all__ = ["AnalyticsConnection", "ClickHouse", "ClickHouseDatabase"]
