"""Reads of rollups over a window: whole hours, the minutes at both ends, and what is not folded."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, Table, select

from collector.store.rollups import state
from collector.store.rollups.deltas import Series
from collector.store.rollups.fold import packed
from collector.store.tables import rollup_delta, rollup_hour, rollup_minute
from collector.store.tables import series as series_table

_HOUR_S = 3600
_MINUTE_S = 60


class Window(NamedTuple):
    """Generations that began in [start, end), both multiples of a minute; None is no bound."""

    start_unix_s: int | None = None
    end_unix_s: int | None = None


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


def totals(
    connection: Connection, series: Iterable[int], window: Window = ALWAYS
) -> dict[int, state.State]:
    """Return what the generations of each series in the window come to; none, no entry."""
    wanted = list(series)
    found: dict[int, list[state.Packed]] = defaultdict(list)
    for part in _ranges(window):
        columns = part.table.c
        statement = select(part.table).where(columns.series_id.in_(wanted))
        if part.start_unix_s is not None:
            statement = statement.where(columns.start_unix_s >= part.start_unix_s)
        if part.end_unix_s is not None:
            statement = statement.where(columns.start_unix_s < part.end_unix_s)
        for row in connection.execute(statement):
            found[row.series_id].append(packed(row))
    return {id_: state.unpack(state.merge(states)) for id_, states in found.items()}


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
