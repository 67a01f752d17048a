"""Reads of rollups in a time window: whole hours, minutes at both ends, and unfolded deltas."""

import math
from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from sqlalchemy import Connection, select

from collector.errors import RequestError
from collector.store import progress
from collector.store.reader import Range, RollupQuery, StoreConnection, TooManyRowsError
from collector.store.rollups import state
from collector.store.rollups.deltas import Series
from collector.store.tables import series as series_table

_HOUR_S: Final = 3600
MOST_ROWS: Final = 20_000
"""The most rollup rows that one read of buckets may use: two weeks of minutes of one series."""


class TimeWindow(NamedTuple):
    """Generations that started in [start, end), both whole minutes; None means no bound."""

    start_unix_s: int | None = None
    end_unix_s: int | None = None


class BucketLength(IntEnum):
    """The length of a bucket in seconds; days are in UTC."""

    MINUTE = 60
    HOUR = 3600
    DAY = 86_400


class Bucket(NamedTuple):
    """One series in one time step."""

    start_unix_s: int
    series_id: int
    state: state.RollupState


ALWAYS = TimeWindow()


def series_of(connection: Connection, rollout: str | None = None) -> dict[int, Series]:
    """Return the series of one rollout, or of all, by id."""
    statement = select(series_table)
    if rollout is not None:
        statement = statement.where(series_table.c.rollout == rollout)
    return {
        row.id: Series(row.rollout, row.arm, row.cohort) for row in connection.execute(statement)
    }


def window(start_unix_s: float | None, end_unix_s: float | None, step: BucketLength) -> TimeWindow:
    """Return the smallest window of whole steps that contains [start, end)."""
    return TimeWindow(
        None if start_unix_s is None else math.floor(start_unix_s / step) * step,
        None if end_unix_s is None else math.ceil(end_unix_s / step) * step,
    )


def kept(
    connection: Connection, window: TimeWindow, step: BucketLength = BucketLength.HOUR
) -> TimeWindow:
    """Return the window widened to whole hours where retention has deleted the minutes.

    Raises `RequestError` if the step is a minute and such minutes are requested.
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
    return TimeWindow(start, end)


def totals(
    connection: StoreConnection, series: Iterable[int], window: TimeWindow = ALWAYS
) -> dict[int, state.RollupState]:
    """Return each series' state over the window; series without generations are omitted."""
    return _totals(connection, series, window, measured=True)


def counts(
    connection: StoreConnection, series: Iterable[int], window: TimeWindow = ALWAYS
) -> dict[int, state.RollupState]:
    """Return each series' counts in the window, without moments and histograms.

    Histograms are most of a rollup's bytes, so this does not read them.
    """
    return _totals(connection, series, window, measured=False)


def buckets(
    connection: StoreConnection,
    series: Iterable[int],
    window: TimeWindow,
    step: BucketLength,
    *,
    measured: bool = True,
) -> list[Bucket]:
    """Return a bucket for each series and step of the window in which a generation started.

    The window must consist of whole steps. Without `measured`, states have only counts. Raises
    `RequestError` if more than `MOST_ROWS` rows would be read.
    """
    asked = [Range(*window)]
    of_minutes = step is BucketLength.MINUTE
    try:
        query = RollupQuery(
            series,
            hours=[] if of_minutes else asked,
            minutes=asked if of_minutes else [],
            step_s=int(step),
            at_most=MOST_ROWS,
            measured=measured,
        )
        found = connection.reader.merged(query)
        return [Bucket(one.start_unix_s, one.series_id, state.unpack(one.packed)) for one in found]
    except TooManyRowsError as exc:
        raise _too_many(step) from exc


def _totals(
    connection: StoreConnection, series: Iterable[int], window: TimeWindow, *, measured: bool
) -> dict[int, state.RollupState]:
    hours, minutes = _ranges(window)
    found = connection.reader.merged(RollupQuery(series, hours, minutes, measured=measured))
    return {one.series_id: state.unpack(one.packed) for one in found}


def _too_many(step: BucketLength) -> RequestError:
    longer = "a longer step, " if step < BucketLength.DAY else ""
    return RequestError(
        f"step={step.name.lower()}: the window is made of more than {MOST_ROWS} rows; "
        f"ask for {longer}a shorter window, or one cohort"
    )


def _ranges(window: TimeWindow) -> tuple[list[Range], list[Range]]:
    """Return the window's whole hours and the minutes at its two ends."""
    start, end = window
    first_hour = None if start is None else -(-start // _HOUR_S) * _HOUR_S
    last_hour = None if end is None else end // _HOUR_S * _HOUR_S
    if first_hour is not None and last_hour is not None and first_hour >= last_hour:
        return [], [Range(start, end)]
    minutes = []
    if start != first_hour:
        minutes.append(Range(start, first_hour))
    if end != last_hour:
        minutes.append(Range(last_hour, end))
    return [Range(first_hour, last_hour)], minutes
