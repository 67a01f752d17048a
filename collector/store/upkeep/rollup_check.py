"""Check of the rollups: recompute them from the generations' rows and compare.

Where retention has deleted generations, rollups must count at least as much as the remaining rows.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Table, func, select

from collector.store import pair_counts, progress
from collector.store.reader import Range, RollupQuery, StoreConnection
from collector.store.rollups import deltas, state
from collector.store.rollups.deltas import Series
from collector.store.tables import generation as g
from collector.store.tables import rollup_hour, rollup_minute
from collector.store.tables import series as s

_HOUR_S: Final = 3600
_NS: Final = 1_000_000_000
_SUMS_WITHIN: Final = 1e-9
_ROWS_AT_ONCE: Final = 2000
_STATES_AT_ONCE: Final = 64


class Difference(NamedTuple):
    """One place in which the stored rollups differ from the recomputed ones."""

    rollout: str
    arm: str | None
    cohort: str | None
    length: str
    """`minute`, `hour` or `pairs`."""
    start_unix_s: int | None
    what: str

    def __str__(self) -> str:
        series = f"rollout {self.rollout!r}, arm {self.arm}, cohort {self.cohort!r}"
        if self.start_unix_s is None:
            return f"rollout {self.rollout!r}: {self.what}"
        return f"{series}, {self.length} {self.start_unix_s}: {self.what}"


class _Bucket(NamedTuple):
    series_id: int
    start_unix_s: int


_States = dict[_Bucket, state.RollupState]


def differences(connection: StoreConnection) -> Iterator[Difference]:
    """Yield the differences between stored and recomputed rollups and pair counts."""
    for rollout in _rollouts(connection):
        yield from _of_rollout(connection, rollout)
    counted, recounted = pair_counts.counts(connection), pair_counts.recount(connection)
    for rollout in sorted({*counted, *recounted}):
        here, there = counted.get(rollout, 0), recounted.get(rollout, 0)
        if here != there:
            what = f"the count says {here:,}, the rows say {there:,}"
            yield Difference(rollout, None, None, "pairs", None, what)


def _rollouts(connection: Connection) -> Iterator[str]:
    """Yield the name of every rollout that has a generation or a rollup, in order."""
    last: str | None = None
    while True:
        after = [] if last is None else [last]
        names = [
            connection.scalar(select(func.min(c.rollout)).where(*(c.rollout > a for a in after)))
            for c in (g.c, s.c)
        ]
        last = min((name for name in names if name is not None), default=None)
        if last is None:
            return
        yield last


def _of_rollout(connection: StoreConnection, rollout: str) -> Iterator[Difference]:
    by_minute, made = _recomputed(connection, rollout)
    known = {
        row.id: Series(row.rollout, row.arm, row.cohort)
        for row in connection.execute(select(s).where(s.c.rollout == rollout))
    }
    series = made | known
    deleted_start = progress.read(connection, progress.DELETED_START)
    minutes_from = progress.read(connection, progress.MINUTES_FROM)
    for length, table, length_s in (
        ("minute", rollup_minute, deltas.MINUTE_S),
        ("hour", rollup_hour, _HOUR_S),
    ):
        stored = _stored(connection, table, list(series), length_s)
        rows = _unpacked(_grouped(by_minute, length_s))
        for key in sorted({*stored, *rows}):
            if length == "minute" and key.start_unix_s < minutes_from:
                continue
            whole = not deleted_start or key.start_unix_s * _NS > deleted_start
            compare = _differs if whole else _lacks
            what = compare(stored.get(key), rows.get(key))
            if what is not None:
                one = series[key.series_id]
                yield Difference(one.rollout, one.arm, one.cohort, length, key.start_unix_s, what)


def _recomputed(
    connection: Connection, rollout: str
) -> tuple[dict[_Bucket, list[state.Packed]], dict[int, Series]]:
    """Return the rollout's rollup states by minute, recomputed from its rows, and its series."""
    found: dict[_Bucket, list[state.Packed]] = defaultdict(list)
    made: dict[int, Series] = {}
    last = 0
    while True:
        rows = connection.execute(
            select(g.c.id, *(g.c[name] for name in deltas.COLUMNS))
            .where(g.c.rollout == rollout, g.c.id > last)
            .order_by(g.c.id)
            .limit(_ROWS_AT_ONCE)
        ).mappings()
        known = [{name: v for name, v in row.items() if v is not None} for row in rows]
        if not known:
            return found, made
        last = known[-1]["id"]
        for delta in deltas.of_rows(known):
            made[delta.series.id] = delta.series
            _append(found[_Bucket(delta.series.id, delta.start_unix_s)], delta.packed)


def _stored(connection: StoreConnection, table: Table, series: list[int], length_s: int) -> _States:
    every = [Range(None, None)]
    hours, minutes = (every, []) if table is rollup_hour else ([], every)
    found = connection.reader.merged(RollupQuery(series, hours, minutes, step_s=length_s))
    return {_Bucket(one.series_id, one.start_unix_s): state.unpack(one.packed) for one in found}


def _grouped(
    by_minute: dict[_Bucket, list[state.Packed]], length_s: int
) -> dict[_Bucket, list[state.Packed]]:
    found: dict[_Bucket, list[state.Packed]] = defaultdict(list)
    for (id_, start), states in by_minute.items():
        _append(found[_Bucket(id_, start // length_s * length_s)], state.merge(states))
    return found


def _append(states: list[state.Packed], one: state.Packed) -> None:
    states.append(one)
    if len(states) > _STATES_AT_ONCE:
        states[:] = [state.merge(states)]


def _unpacked(found: dict[_Bucket, list[state.Packed]]) -> _States:
    return {key: state.unpack(state.merge(states)) for key, states in found.items()}


def _differs(stored: state.RollupState | None, rows: state.RollupState | None) -> str | None:
    """Return the first difference of the two states; None if they are equal."""
    if stored is None or rows is None:
        return "only the rows have it" if stored is None else "only the rollups have it"
    for name, here in _exact(stored).items():
        there = _exact(rows)[name]
        if here != there:
            return f"{name}: rollups say {here}, rows say {there}"
    for metric, moments in stored.moments.items():
        for name in ("sum", "squares"):
            here, there = getattr(moments, name), getattr(rows.moments[metric], name)
            if not math.isclose(here, there, rel_tol=_SUMS_WITHIN):
                return f"{name} of {metric}: rollups say {here!r}, rows say {there!r}"
    return None


def _exact(of: state.RollupState) -> dict[str, Any]:  # Any: compared, and shown
    """Return the values of a state that must be exactly equal."""
    return {
        "first start": of.first_start_unix_ns,
        "last end": of.last_end_unix_ns,
        **of.counts,
        "metrics": sorted(of.moments),
        **{f"n of {name}": m.n for name, m in of.moments.items()},
        **{f"extremes of {name}": (m.min, m.max) for name, m in of.moments.items()},
        "bins": of.bins,
    }


def _lacks(stored: state.RollupState | None, rows: state.RollupState | None) -> str | None:
    """Return the first count that is lower in the rollups than in the rows; None if none is."""
    if rows is None:
        return None
    if stored is None:
        return "only the rows have it"
    below: Iterable[tuple[str, int, int]] = (
        *((name, stored.counts[name], rows.counts[name]) for name in rows.counts),
        *(
            (f"n of {name} in bin {bin_}", stored.bins.get(name, {}).get(bin_, 0), n)
            for name, bins in rows.bins.items()
            for bin_, n in bins.items()
        ),
    )
    for name, here, there in below:
        if here < there:
            return f"{name}: rollups say {here}, the rows that are left say {there}"
    return None
