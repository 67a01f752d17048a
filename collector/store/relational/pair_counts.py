"""Pairs counted by ranges of generation ids."""

from sqlalchemy import ColumnElement, Connection, Subquery, and_, func, null, or_, select

from collector.contract import Arm
from collector.store.tables import generation as g


def completed(connection: Connection, after: int, up_to: int | None, floor: int) -> dict[str, int]:
    """Count the pairs that became complete with a generation in (after, up_to]."""
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


def broken(connection: Connection, floor: int, before: int, last: int) -> dict[str, int]:
    """Count the pairs up to id `last` that use a generation in [floor, before)."""
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


def _keys(*arrived: ColumnElement[bool]) -> Subquery:
    """Return the pair keys of the generations in a range of ids."""
    # coalesce: given bare columns, SQLite would scan a whole index instead of the range of ids.
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
    """Return the id of the arm's first generation with a key, among ids in [floor, up_to]."""
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
