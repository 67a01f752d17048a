"""Reads of rollups over a window: whole hours, the minutes at both ends, and what is not folded."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, Select, Table, select

from collector.errors import RequestError
from collector.store import progress
from collector.store.clickhouse import AnalyticsConnection, analytics_of
from collector.store.clickhouse import rollups as clickhouse_rollups
from collector.store.rollups import state
from collector.store.rollups.deltas import Series
from collector.store.rollups.fold import packed
from collector.store.tables import rollup_delta, rollup_hour, rollup_minute
from collector.store.tables import series as series_table

_HOUR_S: Final = 3600
_MINUTE_S: Final = 60
MOST_ROWS: Final = 20_000
"""Rows of rollups that one read of buckets may take: two weeks of minutes of one series."""
_NUMBERS: Final = (
    "series_id",
    "start_unix_s",
    "first_start_unix_ns",
    "last_end_unix_ns",
    "counts",
)


class Window(NamedTuple):
    """Generations that began in [start, end), both multiples of a minute; None is no bound."""

    start_unix_s: int | None = None
    end_unix_s: int | None = None


class BucketLength(IntEnum):
    """The length of a bucket in seconds; a day is one of UTC."""

    MINUTE = 60
    HOUR = 3600
    DAY = 86_400


class Bucket(NamedTuple):
    """One series in one step of time."""

    start_unix_s: int
    series_id: int
    state: state.State


class _Range(NamedTuple):
    table: Table
    start_unix_s: int | None
    end_unix_s: int | None


ALWAYS = Window()


def series_of(connection: Connection, rollout: str | None = None) -> dict[int, Series]:
    """Return the series by id, of one rollout or of all."""
    statement = select(series_table)
    if rollout is not None:
        statement = statement.where(series_table.c.rollout == rollout)
    return {
        row.id: Series(row.rollout, row.arm, row.cohort) for row in connection.execute(statement)
    }


def window(start_unix_s: float | None, end_unix_s: float | None, step: BucketLength) -> Window:
    """Return the smallest window of whole steps that holds the one that is asked for."""
    return Window(
        None if start_unix_s is None else math.floor(start_unix_s / step) * step,
        None if end_unix_s is None else math.ceil(end_unix_s / step) * step,
    )


def kept(connection: Connection, window: Window, step: BucketLength = BucketLength.HOUR) -> Window:
    """Return the window with what retention has left: before some time, whole hours alone.

    An end that lies there is moved outward to the hour. Raises `RequestError` where minutes are
    asked for that are gone.
    """
    minutes_from = progress.read(connection, progress.MINUTES_FROM)
    start, end = window
    if step is BucketLength.MINUTE and minutes_from and (start is None or start < minutes_from):
        raise RequestError(
            f"minutes before {minutes_from} (Unix seconds) were deleted; "
            "ask for step=hour, or for a later start"
        )
    if start is not None and start < minutes_from:
        start = start // _HOUR_S * _HOUR_S
    if end is not None and end < minutes_from:
        end = -(-end // _HOUR_S) * _HOUR_S
    return Window(start, end)


def totals(
    connection: Connection, series: Iterable[int], window: Window = ALWAYS
) -> dict[int, state.State]:
    """Return what the generations of each series in the window come to; none, no entry."""
    wanted = list(series)
    if (analytics := analytics_of(connection)) is not None:
        return _merged_totals(analytics, wanted, window, measured=True)
    found: dict[int, list[state.Packed]] = defaultdict(list)
    for part in _ranges(window):
        for row in connection.execute(_in_range(select(part.table), part, wanted)):
            found[row.series_id].append(packed(row))
    return _merged_each(found)


def counts(connection: Connection, series: Iterable[int]) -> dict[int, state.State]:
    """Return all that was ever counted of each series, without what was measured.

    The histograms are most of a rollup, and are left where they are.
    """
    wanted = list(series)
    if (analytics := analytics_of(connection)) is not None:
        return _merged_totals(analytics, wanted, ALWAYS, measured=False)
    found: dict[int, list[state.Packed]] = defaultdict(list)
    for part in _ranges(ALWAYS):
        columns = [part.table.c[name] for name in _NUMBERS]
        for row in connection.execute(_in_range(select(*columns), part, wanted)):
            found[row.series_id].append(_counted(row))
    return _merged_each(found)


def buckets(
    connection: Connection,
    series: Iterable[int],
    window: Window,
    step: BucketLength,
    *,
    measured: bool = True,
) -> list[Bucket]:
    """Return each series in each step of the window that anything began in.

    The window is of whole steps. Without what was `measured` there are counts alone. Raises
    `RequestError` where they are made of more than `MOST_ROWS` rows.
    """
    wanted = list(series)
    if (analytics := analytics_of(connection)) is not None:
        return _merged_buckets(analytics, wanted, window, step, measured=measured)
    table = rollup_minute if step is BucketLength.MINUTE else rollup_hour
    found: dict[tuple[int, int], list[state.Packed]] = defaultdict(list)
    for part in (_Range(table, *window), _Range(rollup_delta, *window)):
        columns = part.table.c if measured else [part.table.c[name] for name in _NUMBERS]
        statement = _in_range(select(*columns), part, wanted).limit(MOST_ROWS + 1)
        rows = connection.execute(statement).all()
        if len(rows) > MOST_ROWS:
            raise _too_many(step)
        for row in rows:
            one = packed(row) if measured else _counted(row)
            found[row.start_unix_s // step * step, row.series_id].append(one)
    return [
        Bucket(start_unix_s, series_id, state.unpack(_merged(states)))
        for (start_unix_s, series_id), states in found.items()
    ]


def _merged_totals(
    connection: AnalyticsConnection, series: list[int], window: Window, *, measured: bool
) -> dict[int, state.State]:
    parts = _ranges(window)
    found = clickhouse_rollups.merged(
        connection,
        series,
        hours=_of_table(parts, rollup_hour),
        minutes=_of_table(parts, rollup_minute),
        measured=measured,
    )
    return {one.series_id: state.unpack(one.packed) for one in found}


def _merged_buckets(
    connection: AnalyticsConnection,
    series: list[int],
    window: Window,
    step: BucketLength,
    *,
    measured: bool,
) -> list[Bucket]:
    asked = [clickhouse_rollups.Range(*window)]
    found = list(
        clickhouse_rollups.merged(
            connection,
            series,
            hours=[] if step is BucketLength.MINUTE else asked,
            minutes=asked if step is BucketLength.MINUTE else [],
            step_s=int(step),
            at_most=MOST_ROWS + 1,
            measured=measured,
        )
    )
    if len(found) > MOST_ROWS:
        raise _too_many(step)
    return [Bucket(one.start_unix_s, one.series_id, state.unpack(one.packed)) for one in found]


def _counted(row: Row[Any]) -> state.Packed:
    """Return the state that a row of `_NUMBERS` holds: without what was measured."""
    return state.Packed(row.first_start_unix_ns, row.last_end_unix_ns, row.counts, b"", b"")


def _of_table(parts: Iterable[_Range], table: Table) -> list[clickhouse_rollups.Range]:
    return [
        clickhouse_rollups.Range(part.start_unix_s, part.end_unix_s)
        for part in parts
        if part.table is table
    ]


def _merged_each(found: Mapping[int, list[state.Packed]]) -> dict[int, state.State]:
    merged = state.merge_each(list(found.values()))
    return {id_: state.unpack(one) for id_, one in zip(found, merged, strict=True)}


def _merged(states: list[state.Packed]) -> state.Packed:
    return states[0] if len(states) == 1 else state.merge(states)


def _in_range(statement: Select[Any], part: _Range, series: list[int]) -> Select[Any]:
    columns = part.table.c
    statement = statement.where(columns.series_id.in_(series))
    if part.start_unix_s is not None:
        statement = statement.where(columns.start_unix_s >= part.start_unix_s)
    if part.end_unix_s is not None:
        statement = statement.where(columns.start_unix_s < part.end_unix_s)
    return statement


def _too_many(step: BucketLength) -> RequestError:
    longer = "a longer step, " if step < BucketLength.DAY else ""
    return RequestError(
        f"step={step.name.lower()}: the window is made of more than {MOST_ROWS} rows; "
        f"ask for {longer}a shorter window, or one cohort"
    )


def _ranges(window: Window) -> list[_Range]:
    start, end = window
    deltas = _Range(rollup_delta, start, end)
    first_hour = None if start is None else -(-start // _HOUR_S) * _HOUR_S
    last_hour = None if end is None else end // _HOUR_S * _HOUR_S
    if first_hour is not None and last_hour is not None and first_hour >= last_hour:
        return [deltas, _Range(rollup_minute, start, end)]
    ranges = [deltas, _Range(rollup_hour, first_hour, last_hour)]
    if start is not None and start != first_hour:
        ranges.append(_Range(rollup_minute, start, first_hour))
    if end is not None and end != last_hour:
        ranges.append(_Range(rollup_minute, last_hour, end))
    return ranges
