"""How many pairs each rollout has, counted once for each generation and not for each question.

A pair is complete with the later of its two sides' first generations: so pairs are counted by the
range of ids in which they became complete, and what a read has left to count is what has arrived
since the last fold.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from sqlalchemy import (
    ColumnElement,
    Connection,
    Subquery,
    and_,
    delete,
    func,
    insert,
    null,
    or_,
    select,
    update,
)

from collector.contract import Arm
from collector.store import progress
from collector.store.clickhouse import analytics_of
from collector.store.clickhouse import pair_counts as there
from collector.store.generation_rows import Row
from collector.store.tables import generation as g
from collector.store.tables import pair_count

_AT_MOST_ON_CLICKHOUSE = 200_000
"""There a piece costs more than what is in it."""
_KEY = ("rollout", "prompt_id", "repeat", "arm")


def counts(connection: Connection) -> dict[str, int]:
    """Return the number of pairs of each rollout that has any."""
    known = connection.execute(select(pair_count.c.rollout, pair_count.c.pairs))
    total = Counter({row.rollout: row.pairs for row in known})
    total.update(_completed(connection, _last(connection), None))
    return {rollout: pairs for rollout, pairs in total.items() if pairs}


def recount(connection: Connection) -> dict[str, int]:
    """Return the number of pairs of each rollout that has any, all counted anew."""
    return _completed(connection, 0, None)


def any_uncounted(connection: Connection) -> bool:
    """Say whether generations have arrived since the last count."""
    newest = connection.scalar(select(func.max(g.c.id))) or 0
    return newest > _last(connection)


def advance(connection: Connection, *, at_most: int) -> int:
    """Count the pairs of the next generations; return how many generations were looked at."""
    last = _last(connection)
    if analytics_of(connection) is not None:
        at_most = max(at_most, _AT_MOST_ON_CLICKHOUSE)
    ids = connection.scalars(
        select(g.c.id).where(g.c.id > last).order_by(g.c.id).limit(at_most)
    ).all()
    if not ids:
        return 0
    _add(connection, _completed(connection, last, ids[-1]))
    progress.reach(connection, progress.PAIRS, ids[-1])
    return len(ids)


def add_late(connection: Connection, rows: Iterable[Row]) -> None:
    """Count the pairs that generations complete which are stored below what is counted already.

    For before they are stored, one after the other.
    """
    last = _last(connection)
    added: Counter[str] = Counter()
    seen: set[tuple[object, ...]] = set()
    for row in rows:
        key = tuple(row.get(name) for name in _KEY)
        if row["id"] > last or None in key or key in seen:
            continue
        other = Arm.BASELINE if key[3] == Arm.CANDIDATE else Arm.CANDIDATE
        mine = _counted(connection, key, last)
        theirs = _counted(connection, (*key[:3], other.value), last) or (*key[:3], other) in seen
        if not mine and theirs:
            added[row["rollout"]] += 1
        seen.add(key)
    _add(connection, added)


def leave_out(connection: Connection, before: int) -> None:
    """Take away the pairs that are none without the generations before an id, and note that.

    What was left out is not counted again, whether it is deleted already or not.
    """
    floor = progress.read(connection, progress.RETAINED_FROM)
    last = _last(connection)
    if (analytics := analytics_of(connection)) is not None:
        broken = there.broken(analytics, floor, before, last)
    else:
        broken = _broken(connection, floor, before, last)
    _add(connection, {rollout: -count for rollout, count in broken.items()})
    progress.reach(connection, progress.RETAINED_FROM, before)


def _broken(connection: Connection, floor: int, before: int, last: int) -> dict[str, int]:
    """Count the pairs up to `last` that are none without the generations before an id."""
    keys = _keys(g.c.id >= floor, g.c.id < before, g.c.id <= last)
    counted = [_first(keys, arm, floor, last) for arm in Arm]
    left = [_first(keys, arm, before, last) for arm in Arm]
    rows = connection.execute(
        select(keys.c.rollout, func.count())
        .where(*(side.is_not(None) for side in counted))
        .where(or_(*(side.is_(None) for side in left)))
        .group_by(keys.c.rollout)
    )
    return {rollout: count for rollout, count in rows}  # noqa: C416  # rows are not pairs to mypy


def forget(connection: Connection) -> None:
    """Begin to count anew."""
    connection.execute(delete(pair_count))
    progress.forget(connection, progress.PAIRS)


def _last(connection: Connection) -> int:
    return progress.read(connection, progress.PAIRS)


def _add(connection: Connection, added: Mapping[str, int]) -> None:
    for rollout, pairs in added.items():
        changed = connection.execute(
            update(pair_count)
            .where(pair_count.c.rollout == rollout)
            .values(pairs=pair_count.c.pairs + pairs)
        )
        if not changed.rowcount:
            connection.execute(insert(pair_count).values(rollout=rollout, pairs=pairs))


def _counted(connection: Connection, key: tuple[object, ...], last: int) -> bool:
    """Say whether a generation with this key is among those that are counted."""
    floor = progress.read(connection, progress.RETAINED_FROM)
    found = select(g.c.id).where(
        *(g.c[name] == value for name, value in zip(_KEY, key, strict=True)),
        g.c.id >= floor,
        g.c.id <= last,
    )
    return connection.scalar(found.limit(1)) is not None


def _completed(connection: Connection, after: int, up_to: int | None) -> dict[str, int]:
    """Count the pairs that became complete with a generation in (after, up_to]."""
    floor = progress.read(connection, progress.RETAINED_FROM)
    if (analytics := analytics_of(connection)) is not None:
        return there.completed(analytics, after, up_to, floor)
    arrived = [g.c.id > after] if up_to is None else [g.c.id > after, g.c.id <= up_to]
    keys = _keys(*arrived, g.c.id >= floor)
    baseline, candidate = (_first(keys, arm, floor, up_to) for arm in Arm)
    rows = connection.execute(
        select(keys.c.rollout, func.count())
        .where(and_(baseline.is_not(None), candidate.is_not(None)))
        .where((baseline > after) | (candidate > after))
        .group_by(keys.c.rollout)
    )
    return {rollout: count for rollout, count in rows}  # noqa: C416  # rows are not pairs to mypy


def _keys(*arrived: ColumnElement[bool]) -> Subquery:
    """Return the keys of pairs that the generations of a range of ids have."""
    # SQLite would take the bare columns for a reason to walk a whole index, and not the few ids.
    key = [
        func.coalesce(column, null()).label(column.name)
        for column in (g.c.rollout, g.c.prompt_id, g.c.repeat)
    ]
    return (
        select(*key)
        .where(*arrived, g.c.arm.is_not(None), *(column.is_not(None) for column in key))
        .distinct()
        .subquery()
    )


def _first(keys: Subquery, arm: Arm, floor: int, up_to: int | None) -> ColumnElement[int]:
    """Return the id of the arm's first generation under a key, of those that are looked at."""
    first = select(func.min(g.c.id)).where(
        g.c.rollout == keys.c.rollout,
        g.c.prompt_id == keys.c.prompt_id,
        g.c.repeat == keys.c.repeat,
        g.c.arm == arm.value,
    )
    if floor:
        first = first.where(g.c.id >= floor)
    if up_to is not None:
        first = first.where(g.c.id <= up_to)
    return first.correlate(keys).scalar_subquery()
