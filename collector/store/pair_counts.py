"""How many pairs each rollout has, counted once for each generation and not for each question.

A pair is complete with the later of its two sides' first generations: so pairs are counted by the
range of ids in which they became complete, and what a read has left to count is what has arrived
since the last fold.
"""

from collections import Counter

from sqlalchemy import (
    ColumnElement,
    Connection,
    Subquery,
    and_,
    delete,
    func,
    insert,
    null,
    select,
    update,
)

from collector.contract import Arm
from collector.store.tables import generation as g
from collector.store.tables import pair_count, progress

_NAME = "pair_count"


def counts(connection: Connection) -> dict[str, int]:
    """Return the number of pairs of each rollout that has any."""
    known = connection.execute(select(pair_count.c.rollout, pair_count.c.pairs))
    total = Counter({row.rollout: row.pairs for row in known})
    total.update(_completed(connection, _last(connection), None))
    return dict(total)


def advance(connection: Connection, *, at_most: int) -> int:
    """Count the pairs of the next generations; return how many generations were looked at."""
    last = _last(connection)
    ids = connection.scalars(
        select(g.c.id).where(g.c.id > last).order_by(g.c.id).limit(at_most)
    ).all()
    if not ids:
        return 0
    for rollout, pairs in _completed(connection, last, ids[-1]).items():
        changed = connection.execute(
            update(pair_count)
            .where(pair_count.c.rollout == rollout)
            .values(pairs=pair_count.c.pairs + pairs)
        )
        if not changed.rowcount:
            connection.execute(insert(pair_count).values(rollout=rollout, pairs=pairs))
    connection.execute(delete(progress).where(progress.c.name == _NAME))
    connection.execute(insert(progress).values(name=_NAME, id=ids[-1]))
    return len(ids)


def forget(connection: Connection) -> None:
    """Begin to count anew: generations were deleted."""
    connection.execute(delete(pair_count))
    connection.execute(delete(progress).where(progress.c.name == _NAME))


def _last(connection: Connection) -> int:
    return connection.scalar(select(progress.c.id).where(progress.c.name == _NAME)) or 0


def _completed(connection: Connection, after: int, up_to: int | None) -> dict[str, int]:
    """Count the pairs that became complete with a generation in (after, up_to]."""
    arrived = [g.c.id > after] if up_to is None else [g.c.id > after, g.c.id <= up_to]
    # SQLite would take the bare columns for a reason to walk a whole index, and not the few ids.
    key = [
        func.coalesce(column, null()).label(column.name)
        for column in (g.c.rollout, g.c.prompt_id, g.c.repeat)
    ]
    keys = (
        select(*key)
        .where(*arrived, g.c.arm.is_not(None), *(column.is_not(None) for column in key))
        .distinct()
        .subquery()
    )
    baseline, candidate = (_first(keys, arm, up_to) for arm in Arm)
    rows = connection.execute(
        select(keys.c.rollout, func.count())
        .where(and_(baseline.is_not(None), candidate.is_not(None)))
        .where((baseline > after) | (candidate > after))
        .group_by(keys.c.rollout)
    )
    return {rollout: count for rollout, count in rows}  # noqa: C416  # rows are not pairs to mypy


def _first(keys: Subquery, arm: Arm, up_to: int | None) -> ColumnElement[int]:
    """Return the id of the arm's first generation under a key, of those that are looked at."""
    first = select(func.min(g.c.id)).where(
        g.c.rollout == keys.c.rollout,
        g.c.prompt_id == keys.c.prompt_id,
        g.c.repeat == keys.c.repeat,
        g.c.arm == arm.value,
    )
    if up_to is not None:
        first = first.where(g.c.id <= up_to)
    return first.correlate(keys).scalar_subquery()
