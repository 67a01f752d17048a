"""Retention on ClickHouse: partitions are dropped, and rows that lie elsewhere deleted."""

from typing import Final

from collector.store import days as arrival
from collector.store.clickhouse import rollups
from collector.store.clickhouse.connection import AnalyticsConnection

_JUDGEMENTS: Final = ("score", "feedback")


def drop_days(connection: AnalyticsConnection, table_name: str, before: int) -> int:
    """Drop the table's days that end by the id, and return how many that are."""
    clickhouse = connection.clickhouse
    days = [
        day for day in clickhouse.days(table_name) if arrival.first_id_of_day(day + 1) <= before
    ]
    for day in days:
        clickhouse.alter(table_name, f"DROP PARTITION {day}")
    return len(days)


def forget_judged(connection: AnalyticsConnection, before: int) -> None:
    """Delete the scores and the feedback of the spans before an id."""
    of_span = f"(trace_id, span_id) IN (SELECT trace_id, span_id FROM span_key WHERE id < {before})"  # noqa: S608  # a number
    for table in _JUDGEMENTS:
        if next(connection.rows(f"SELECT count() FROM {table} WHERE {of_span}"))[0]:  # noqa: S608
            connection.clickhouse.alter(table, f"DELETE WHERE {of_span}")


def delete_minutes(connection: AnalyticsConnection, before_unix_s: int) -> int:
    """Delete the minutes before a time, once hours hold them, and return how many rows."""
    old = f"start_unix_s < {before_unix_s}"
    count = f"SELECT count() FROM rollup_minute WHERE {old}"  # noqa: S608  # a number
    rows: int = next(connection.rows(count))[0]
    if rows:
        rollups.fold_hours(connection)
        connection.clickhouse.alter("rollup_minute", f"DELETE WHERE {old}")
    return rows
