"""Retention: whole days are dropped once they are old enough, a bounded piece at a time.

A span's day is that of its arrival. With it go its text, its generation, its scores and feedback;
what the generation added to the hours' rollups stays. Text can have a shorter time of its own, and
goes without taking a number with it. Engine samples and the minutes of rollups go by their own
time.

On PostgreSQL a day is dropped as partitions, once nothing that is no partition tells of it any
more; on SQLite its rows are deleted by the range of their ids.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from sqlalchemy import Connection, Select, delete, func, select, text

from collector.store import pair_counts, partitions, progress, regressions
from collector.store.clickhouse import AnalyticsConnection, analytics_of
from collector.store.clickhouse import retention as clickhouse_retention
from collector.store.tables import (
    content,
    engine_sample,
    engine_span,
    feedback,
    generation,
    rollup_minute,
    score,
    series,
    span,
    span_key,
)

_DAY_S: Final = 86_400
_NS: Final = 1_000_000_000
_ROWS: Final = 500
"""Spans in a piece: about 50 ms of work, for senders wait meanwhile."""
_OTHER_ROWS: Final = 5000
# Dropping waits for whoever reads the table, and all who come after wait behind it.
_DROP_WITHIN: Final = "500ms"


class Keep(NamedTuple):
    """For how long; None is for ever."""

    spans_s: int | None = None
    content_s: int | None = None

    @property
    def everything(self) -> bool:
        """Whether there is nothing to do."""
        return self == Keep()


def step(connection: Connection, keep: Keep, now_unix_s: float) -> int:
    """Delete a piece of what is too old, and return how much; 0 where nothing is left to do.

    The transaction must exclude other writers.
    """
    if keep.content_s is not None:
        before = partitions.first_id_of(now_unix_s - keep.content_s)
        if done := _delete_content(connection, before):
            return done
    if keep.spans_s is None:
        return 0
    before = partitions.first_id_of(now_unix_s - keep.spans_s)
    before_unix_s = partitions.day_of(before) * _DAY_S
    return (
        _delete_spans(connection, before)
        or _delete_samples(connection, before_unix_s * _NS)
        or _delete_minutes(connection, before_unix_s)
    )


def due(connection: Connection, keep: Keep, now_unix_s: float) -> dict[str, int]:
    """Return how many rows of each table are too old; the scores and feedback of spans apart."""
    found: dict[str, int] = {}
    ages = (
        (content, keep.content_s if keep.content_s is not None else keep.spans_s),
        (span, keep.spans_s),
        (generation, keep.spans_s),
    )
    for table, age_s in ages:
        if age_s is not None:
            old = table.c.id < partitions.first_id_of(now_unix_s - age_s)
            found[table.name] = _count(
                connection, select(func.count()).select_from(table).where(old)
            )
    if keep.spans_s is None:
        return found
    day = partitions.day_of(partitions.first_id_of(now_unix_s - keep.spans_s))
    e, m = engine_sample.c, rollup_minute.c
    found[engine_sample.name] = sum(
        _count(
            connection,
            select(func.count())
            .select_from(engine_sample)
            .where(e.metric == metric, e.time_unix_ns < day * _DAY_S * _NS),
        )
        for metric in _metrics(connection)
    )
    found[rollup_minute.name] = _count(
        connection,
        select(func.count()).select_from(rollup_minute).where(m.start_unix_s < day * _DAY_S),
    )
    return found


def _count(connection: Connection, counted: Select[int]) -> int:
    return connection.scalar(counted) or 0


def _delete_content(connection: Connection, before: int) -> int:
    if (analytics := analytics_of(connection)) is not None:
        return clickhouse_retention.drop_days(analytics, content.name, before)
    if connection.dialect.name == "postgresql":
        return _drop_day(connection, content.name, before)
    c = content.c.id
    last = _last_of(connection, select(c).where(c < before).order_by(c).limit(_ROWS))
    if last is None:
        return 0
    return connection.execute(delete(content).where(c <= last)).rowcount


def _delete_spans(connection: Connection, before: int) -> int:
    floor = progress.read(connection, progress.RETAINED_FROM)
    if connection.dialect.name == "postgresql":
        for table in partitions.BY_DAY:
            if _drop_day(connection, table.name, floor):
                return 1
    if (analytics := analytics_of(connection)) is not None:
        return _delete_days_clickhouse(analytics, floor, before)
    s = span.c.id
    piece = select(s).where(s >= floor, s < before).order_by(s).limit(_ROWS)
    last = _last_of(connection, piece)
    if last is None:
        if floor < before:
            progress.reach(connection, progress.RETAINED_FROM, before)
            return 1
        return 0
    end = last + 1
    _note_latest_start(connection, floor, end)
    pair_counts.leave_out(connection, end)
    regressions.forget_before(connection, end)
    connection.execute(delete(engine_span).where(engine_span.c.id < end))
    if connection.dialect.name == "postgresql":
        return _forget_keys_postgres(connection, floor, end)
    return _delete_rows_sqlite(connection, end)


def _delete_days_clickhouse(connection: AnalyticsConnection, floor: int, before: int) -> int:
    """Delete all days that end by the id, and what is kept elsewhere of their spans."""
    if floor < before:
        _note_latest_start(connection, floor, before)
        pair_counts.leave_out(connection, before)
        regressions.forget_before(connection, before)
        connection.execute(delete(engine_span).where(engine_span.c.id < before))
        clickhouse_retention.forget_judged(connection, before)
    # Also where the days are noted as gone: whoever noted it may have ended there.
    dropped = sum(
        clickhouse_retention.drop_days(connection, table.name, before)
        for table in (span_key, *partitions.BY_DAY)
    )
    return dropped or int(floor < before)


def _note_latest_start(connection: Connection, floor: int, end: int) -> None:
    """Note until when rollups say more than the rows that are left."""
    g = generation.c
    latest = connection.scalar(select(func.max(g.start_unix_ns)).where(g.id >= floor, g.id < end))
    if latest is not None and latest > progress.read(connection, progress.DELETED_START):
        progress.reach(connection, progress.DELETED_START, latest)


def _forget_keys_postgres(connection: Connection, floor: int, end: int) -> int:
    """Delete what tells of the spans outside of their partitions."""
    s = span.c
    here = (s.id >= floor, s.id < end)
    for table in (score, feedback):
        of_span = (table.c.trace_id == s.trace_id, table.c.span_id == s.span_id)
        connection.execute(delete(table).where(*of_span, *here))
    # By the ids' BRIN index: a join with the partition would go by the keys' order, at random.
    key = span_key.c.id
    return connection.execute(delete(span_key).where(key >= floor, key < end)).rowcount


def _delete_rows_sqlite(connection: Connection, end: int) -> int:
    s = span.c
    keys = [
        tuple(row) for row in connection.execute(select(s.trace_id, s.span_id).where(s.id < end))
    ]
    for table in (score, feedback, span_key):
        # One by one: SQLite would scan the whole table for a list of keys.
        connection.exec_driver_sql(
            f"DELETE FROM {table.name} WHERE trace_id = ? AND span_id = ?",  # noqa: S608  # ours
            keys,
        )
    for table in partitions.BY_DAY:
        connection.execute(delete(table).where(table.c.id < end))
    return len(keys)


def _drop_day(connection: Connection, table_name: str, before: int) -> int:
    """Drop the table's oldest partition that ends by the id, and return how many that are."""
    oldest = next(iter(partitions.days(connection, table_name)), None)
    if oldest is None or partitions.first_id_of_day(oldest + 1) > before:
        return 0
    connection.execute(text(f"SET LOCAL lock_timeout = '{_DROP_WITHIN}'"))
    connection.exec_driver_sql(f"DROP TABLE {partitions.name_of(table_name, oldest)}")
    return 1


def _delete_samples(connection: Connection, before_unix_ns: int) -> int:
    e = engine_sample.c
    for metric in _metrics(connection):
        old = (e.metric == metric, e.time_unix_ns < before_unix_ns)
        piece = select(e.time_unix_ns).where(*old).order_by(e.time_unix_ns).limit(_OTHER_ROWS)
        last = _last_of(connection, piece)
        if last is not None:
            statement = delete(engine_sample).where(e.metric == metric, e.time_unix_ns <= last)
            return connection.execute(statement).rowcount
    return 0


def _metrics(connection: Connection) -> Iterator[str]:
    """Yield the names of metrics, each found by the one before it."""
    e = engine_sample.c
    last = connection.scalar(select(func.min(e.metric)))
    while last is not None:
        yield last
        last = connection.scalar(select(func.min(e.metric)).where(e.metric > last))


def _delete_minutes(connection: Connection, before_unix_s: int) -> int:
    m = rollup_minute.c
    if progress.read(connection, progress.MINUTES_FROM) < before_unix_s:
        progress.reach(connection, progress.MINUTES_FROM, before_unix_s)
    if (analytics := analytics_of(connection)) is not None:
        return clickhouse_retention.delete_minutes(analytics, before_unix_s)
    done = 0
    for id_ in connection.scalars(select(series.c.id)).all():
        first = connection.scalar(select(func.min(m.start_unix_s)).where(m.series_id == id_))
        if first is None or first >= before_unix_s:
            continue
        end = min(first + _DAY_S, before_unix_s)
        statement = delete(rollup_minute).where(m.series_id == id_, m.start_unix_s < end)
        done += connection.execute(statement).rowcount
        if done >= _OTHER_ROWS:
            break
    return done


def _last_of(connection: Connection, piece: Select[int]) -> int | None:
    ids = connection.scalars(piece).all()
    return ids[-1] if ids else None
