"""Retention on ClickHouse: drop partitions, and delete rows of unpartitioned tables."""

from typing import Final

from collector.store import days as arrival
from collector.store.clickhouse import rollups
from collector.store.clickhouse.connection import AnalyticsConnection

_JUDGEMENTS: Final = ("score", "feedback")


def drop_days(connection: AnalyticsConnection, table_name: str, before: int) -> int:
    """Drop the table's days that end at or before the id; return how many were dropped."""
    clickhouse = connection.clickhouse
    days = [
        day for day in clickhouse.days(table_name) if arrival.first_id_of_day(day + 1) <= before
    ]
    for day in days:
        clickhouse.alter(table_name, f"DROP PARTITION {day}")
    return len(days)


def delete_judgements(connection: AnalyticsConnection, before: int) -> None:
    """Delete the scores and feedback of the spans before an id."""
    of_span = f"(trace_id, span_id) IN (SELECT trace_id, span_id FROM span_key WHERE id < {before})"  # noqa: S608  # a number
    for table in _JUDGEMENTS:
        if next(connection.rows(f"SELECT count() FROM {table} WHERE {of_span}"))[0]:  # noqa: S608
            connection.clickhouse.alter(table, f"DELETE WHERE {of_span}")


def delete_minutes(connection: AnalyticsConnection, before_unix_s: int) -> int:
    """Fold minutes into hours, then delete those before a time; return how many were deleted."""
    old = f"start_unix_s < {before_unix_s}"
    count = f"SELECT count() FROM rollup_minute WHERE {old}"  # noqa: S608  # a number
    rows: int = next(connection.rows(count))[0]
    if rows:
        rollups.fold_hours(connection)
        connection.clickhouse.alter("rollup_minute", f"DELETE WHERE {old}")
    return rows
