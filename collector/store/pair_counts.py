"""The number of pairs of each rollout, counted incrementally.

A pair becomes complete with the later of its two sides' first generations. So pairs are counted by
the range of ids in which they became complete: upkeep counts ranges and stores the sums, and a read
only counts what arrived since.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, func, insert, select, update

from collector.contract import Arm
from collector.store import progress
from collector.store.generation_rows import Row
from collector.store.reader import StoreConnection
from collector.store.tables import generation as g
from collector.store.tables import pair_count

_KEY = ("rollout", "prompt_id", "repeat", "arm")


def counts(connection: StoreConnection) -> dict[str, int]:
    """Return the number of pairs of each rollout that has any."""
    known = connection.execute(select(pair_count.c.rollout, pair_count.c.pairs))
    total = Counter({row.rollout: row.pairs for row in known})
    total.update(_completed(connection, _last(connection), None))
    return {rollout: pairs for rollout, pairs in total.items() if pairs}


def recount(connection: StoreConnection) -> dict[str, int]:
    """Return the number of pairs of each rollout that has any, recounted from all generations."""
    return _completed(connection, 0, None)


def any_uncounted(connection: StoreConnection) -> bool:
    """Return whether generations have arrived since the last count."""
    newest = connection.scalar(select(func.max(g.c.id))) or 0
    return newest > _last(connection)


def advance(connection: StoreConnection, *, at_most: int) -> int:
    """Count the pairs of the next generations; return how many generations were processed."""
    last = _last(connection)
    most = max(at_most, connection.reader.generations_at_least)
    ids = connection.scalars(select(g.c.id).where(g.c.id > last).order_by(g.c.id).limit(most)).all()
    if not ids:
        return 0
    _add(connection, _completed(connection, last, ids[-1]))
    progress.reach(connection, progress.PAIRS, ids[-1])
    return len(ids)


def add_late(connection: Connection, rows: Iterable[Row]) -> None:
    """Count the pairs completed by new generations whose ids are in the counted range already.

    Call it before the rows are inserted.
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


def subtract_before(connection: StoreConnection, before: int) -> None:
    """Subtract the pairs that lose a side when generations before an id are deleted.

    Also stores the id as the retention floor: generations below it are never counted again, whether
    deleted yet or not.
    """
    floor = progress.read(connection, progress.RETAINED_FROM)
    last = _last(connection)
    broken = connection.reader.broken_pairs(floor, before, last)
    _add(connection, {rollout: -count for rollout, count in broken.items()})
    progress.reach(connection, progress.RETAINED_FROM, before)


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
    """Return whether a generation with this key is in the counted range."""
    floor = progress.read(connection, progress.RETAINED_FROM)
    found = select(g.c.id).where(
        *(g.c[name] == value for name, value in zip(_KEY, key, strict=True)),
        g.c.id >= floor,
        g.c.id <= last,
    )
    return connection.scalar(found.limit(1)) is not None


def _completed(connection: StoreConnection, after: int, up_to: int | None) -> dict[str, int]:
    floor = progress.read(connection, progress.RETAINED_FROM)
    return connection.reader.completed_pairs(after, up_to, floor)
