"""Rollups on ClickHouse: deltas of commits, folded into minutes and hours, and merged on reading.

A fold writes the states of a range of commits with the range's last id (`up_to`) and becomes
visible when its mark is moved. A reader takes hours up to one mark, minutes between it and a later
mark, and deltas beyond that. So it sees each commit once, even during a fold.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from collector.store import days, progress
from collector.store.clickhouse import states, watermarks
from collector.store.clickhouse.connection import AnalyticsConnection
from collector.store.reader import Merged, Range, RollupQuery
from collector.store.rollups.deltas import Delta

_HOUR_S: Final = 3600
_MINUTES_A_SERIES: Final = 120
"""Fold hours above this many unfolded minute rows per series: 10 minutes of folds every 5 s."""
_KEPT_DAYS: Final = 1
"""Days for which folded deltas are kept: a reader may have begun before the fold."""


def add(connection: AnalyticsConnection, id_: int, deltas: Sequence[Delta]) -> None:
    """Write the deltas of a commit, all with the same id."""
    columns = {
        "id": pa.array([id_] * len(deltas), pa.int64()),
        "series_id": pa.array([delta.series.id for delta in deltas], pa.int64()),
        "start_unix_s": pa.array([delta.start_unix_s for delta in deltas], pa.int64()),
        **states.to_columns([delta.packed for delta in deltas]),
    }
    connection.clickhouse.insert("rollup_delta", pa.table(columns))


def merged(connection: AnalyticsConnection, query: RollupQuery) -> Iterator[Merged]:
    """Yield the series' states merged over all ranges, at most `at_most` + 1 entries."""
    series, hours, minutes, step_s, at_most, measured = query
    wanted = ", ".join(map(str, series))
    if not wanted:
        return
    start = "toInt64(0)" if step_s is None else f"intDiv(start_unix_s, {step_s}) * {step_s}"
    aggregates = states.MERGED if measured else f"{states.ENDS}, {states.COUNTS}"
    columns = ", ".join(states.COLUMNS if measured else states.COLUMNS[:4])
    parts = " UNION ALL ".join(
        f"SELECT series_id, start_unix_s, {columns} FROM {table} "  # noqa: S608  # names are ours
        f"WHERE series_id IN ({wanted}) AND {condition}"
        for table, condition in _sources(connection.watermarks, hours, minutes)
    )
    limit = "" if at_most is None else f" LIMIT {at_most + 1}"
    answer = connection.query(
        f"SELECT series_id, {start} AS step, {aggregates} FROM ({parts}) "  # noqa: S608  # as above
        f"GROUP BY series_id, step{limit}",
        final=False,
    )
    packed = states.from_columns(answer.columns[2:])
    ids, starts = (answer.columns[i].to_pylist() for i in (0, 1))
    yield from (Merged(*row) for row in zip(ids, starts, packed, strict=True))


def _sources(
    at: watermarks.Watermarks, hours: Sequence[Range], minutes: Sequence[Range]
) -> Iterator[tuple[str, str]]:
    """Yield each table to read, once, with its condition.

    The ranges must not overlap.
    """
    if at.folded < at.committed:
        yield "rollup_delta", f"{_unfolded(at)} AND {_any(*hours, *minutes)}"
    if hours:
        yield "rollup_hour", f"up_to <= {at.hours} AND {_any(*hours)}"
    of_minutes = [_any(*minutes)] if minutes else []
    if hours and at.hours < at.folded:
        of_minutes.append(f"(up_to > {at.hours} AND {_any(*hours)})")
    if of_minutes:
        yield "rollup_minute", f"up_to <= {at.folded} AND ({' OR '.join(of_minutes)})"


def _any(*ranges: Range) -> str:
    return f"({' OR '.join(f'({_within(one)})' for one in ranges)})"


def _within(one: Range) -> str:
    start, end = one
    parts = [f"start_unix_s >= {start}"] if start is not None else []
    parts += [f"start_unix_s < {end}"] if end is not None else []
    return " AND ".join(parts) or "1"


def _unfolded(at: watermarks.Watermarks) -> str:
    return f"id > {at.folded} AND {at.visible}"


def pending(connection: AnalyticsConnection) -> int:
    """Return how many rollup deltas wait to be folded."""
    sql = f"SELECT count() FROM rollup_delta WHERE {_unfolded(connection.watermarks)}"  # noqa: S608
    return next(connection.rows(sql))[0]  # type: ignore[no-any-return]


def fold(connection: AnalyticsConnection) -> int:
    """Fold all waiting deltas and return how many; the transaction must exclude other writers."""
    waiting = pending(connection)
    if not waiting:
        return 0
    at = connection.watermarks
    _forget_unfinished(connection, at)
    _fold(connection, "rollup_delta", _unfolded(at), "rollup_minute", 60, at.committed)
    progress.reach(connection, watermarks.FOLDED, at.committed)
    connection.forget_watermarks()
    if _many_minutes(connection):
        fold_hours(connection)
    _drop_folded_days(connection, days.day_of(at.committed) - _KEPT_DAYS)
    return waiting


def fold_hours(connection: AnalyticsConnection) -> None:
    """Fold all minutes that are not folded yet into hours."""
    at = connection.watermarks
    new = f"up_to > {at.hours} AND up_to <= {at.folded}"
    _fold(connection, "rollup_minute", new, "rollup_hour", _HOUR_S, at.folded)
    progress.reach(connection, watermarks.HOURS, at.folded)
    connection.forget_watermarks()


def _fold(
    connection: AnalyticsConnection,
    source: str,
    condition: str,
    target: str,
    length_s: int,
    up_to: int,
) -> None:
    columns = ", ".join(states.COLUMNS)
    connection.clickhouse.command(
        f"INSERT INTO {target} (series_id, start_unix_s, up_to, {columns}) "  # noqa: S608  # ours
        f"SELECT series_id, intDiv(start_unix_s, {length_s}) * {length_s} AS start, {up_to}, "
        f"{states.MERGED} FROM {source} WHERE {condition} GROUP BY series_id, start",
        {"final": 0},
    )


def _forget_unfinished(connection: AnalyticsConnection, at: watermarks.Watermarks) -> None:
    """Delete the rows of a fold that failed before moving its mark."""
    for table, mark in (("rollup_minute", at.folded), ("rollup_hour", at.hours)):
        found = connection.rows(f"SELECT count() FROM {table} WHERE up_to > {mark}")  # noqa: S608
        if next(found)[0]:
            connection.clickhouse.alter(table, f"DELETE WHERE up_to > {mark}")


def _many_minutes(connection: AnalyticsConnection) -> bool:
    new = f"up_to > {connection.watermarks.hours}"
    sql = f"SELECT count(), uniqExact(series_id) FROM rollup_minute WHERE {new}"  # noqa: S608
    rows, series = next(connection.rows(sql))
    return bool(rows > _MINUTES_A_SERIES * series)


def _drop_folded_days(connection: AnalyticsConnection, before_day: int) -> None:
    for day in connection.clickhouse.days("rollup_delta"):
        if day < before_day:
            connection.clickhouse.alter("rollup_delta", f"DROP PARTITION {day}")
