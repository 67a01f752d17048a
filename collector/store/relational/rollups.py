"""Rollups: folding deltas into minutes and hours, a bounded number at a time, and reads."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    delete,
    func,
    insert,
    select,
    tuple_,
)

from collector.store.reader import Merged, Range, RollupQuery, TooManyRowsError
from collector.store.rollups import state
from collector.store.tables import rollup_delta, rollup_hour, rollup_minute

_HOUR_S = 3600
_KEYS_A_QUERY = 500
_NUMBERS = ("series_id", "start_unix_s", "first_start_unix_ns", "last_end_unix_ns", "counts")

_Key = tuple[int, int]
"""Series id and start."""


def pending(connection: Connection) -> int:
    """Return approximately how many deltas wait to be folded, from their lowest and highest id.

    On PostgreSQL failed commits leave gaps in the ids, so the number may be too large.
    """
    oldest, newest = (
        connection.scalar(select(end(rollup_delta.c.id))) for end in (func.min, func.max)
    )
    return 0 if oldest is None or newest is None else newest - oldest + 1


def fold(connection: Connection, *, at_most: int) -> int:
    """Fold the oldest deltas and return how many; the transaction must exclude other writers."""
    rows = connection.execute(select(rollup_delta).order_by(rollup_delta.c.id).limit(at_most)).all()
    if not rows:
        return 0
    for table, length_s in ((rollup_minute, 1), (rollup_hour, _HOUR_S)):
        added: dict[_Key, list[state.Packed]] = defaultdict(list)
        for row in rows:
            added[row.series_id, row.start_unix_s // length_s * length_s].append(_packed(row))
        _add(connection, table, added)
    connection.execute(delete(rollup_delta).where(rollup_delta.c.id <= rows[-1].id))
    return len(rows)


def merged(connection: Connection, query: RollupQuery) -> Iterator[Merged]:
    """Yield the rollups of the series, merged over all ranges; raises as `Reader.merged`."""
    series, hours, minutes, step_s, at_most, measured = query
    wanted = list(series)
    found: dict[_Key, list[state.Packed]] = defaultdict(list)
    for table, part in (
        (rollup_delta, _whole([*hours, *minutes])),
        *((rollup_hour, part) for part in hours),
        *((rollup_minute, part) for part in minutes),
    ):
        columns = table.c if measured else [table.c[name] for name in _NUMBERS]
        statement = _in_range(select(*columns), table, part).where(table.c.series_id.in_(wanted))
        rows = connection.execute(
            statement if at_most is None else statement.limit(at_most + 1)
        ).all()
        if at_most is not None and len(rows) > at_most:
            raise TooManyRowsError
        for row in rows:
            start = 0 if step_s is None else row.start_unix_s // step_s * step_s
            found[row.series_id, start].append(_packed(row) if measured else _counted(row))
    for key, one in zip(found, state.merge_each(list(found.values())), strict=True):
        yield Merged(*key, one)


def _whole(parts: Sequence[Range]) -> Range:
    """Return the union of adjacent ranges."""
    starts, ends = [part.start_unix_s for part in parts], [part.end_unix_s for part in parts]
    return Range(
        None if None in starts else min(start for start in starts if start is not None),
        None if None in ends else max(end for end in ends if end is not None),
    )


def _in_range(statement: Select[Any], table: Table, part: Range) -> Select[Any]:
    if part.start_unix_s is not None:
        statement = statement.where(table.c.start_unix_s >= part.start_unix_s)
    if part.end_unix_s is not None:
        statement = statement.where(table.c.start_unix_s < part.end_unix_s)
    return statement


def _packed(row: Row[Any]) -> state.Packed:
    """Return the state in a row of a rollup table or of the deltas."""
    return state.Packed(
        row.first_start_unix_ns, row.last_end_unix_ns, row.counts, row.moments, row.bins
    )


def _counted(row: Row[Any]) -> state.Packed:
    """Return the state in a row of `_NUMBERS`: counts without moments and histograms."""
    return state.Packed(row.first_start_unix_ns, row.last_end_unix_ns, row.counts, b"", b"")


def _add(connection: Connection, table: Table, added: dict[_Key, list[state.Packed]]) -> None:
    keys = list(added)
    for at in range(0, len(keys), _KEYS_A_QUERY):
        _add_some(connection, table, {key: added[key] for key in keys[at : at + _KEYS_A_QUERY]})


def _add_some(
    connection: Connection, table: Table, added: dict[_Key, Sequence[state.Packed]]
) -> None:
    known = connection.execute(select(table).where(_is_among(connection, table, added))).all()
    old = {(row.series_id, row.start_unix_s): _packed(row) for row in known}
    if old:
        connection.execute(delete(table).where(_is_among(connection, table, old)))
    merged = state.merge_each([[*_known(old, key), *new] for key, new in added.items()])
    connection.execute(
        insert(table),
        [
            {"series_id": series_id, "start_unix_s": start_unix_s, **one._asdict()}
            for (series_id, start_unix_s), one in zip(added, merged, strict=True)
        ],
    )


def _is_among(connection: Connection, table: Table, keys: Iterable[_Key]) -> ColumnElement[bool]:
    """Return the condition that a row has one of the keys.

    For a list of pairs SQLite would scan the whole table; for a subquery it looks each pair up.
    """
    key = tuple_(table.c.series_id, table.c.start_unix_s)
    if connection.dialect.name != "sqlite":
        return key.in_(list(keys))
    pair = func.json_each(json.dumps(list(keys))).table_valued("value").c.value
    return key.in_(select(func.json_extract(pair, "$[0]"), func.json_extract(pair, "$[1]")))


def _known(old: dict[_Key, state.Packed], key: _Key) -> list[state.Packed]:
    return [old[key]] if key in old else []
