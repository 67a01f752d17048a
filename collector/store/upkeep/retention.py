"""Retention: delete whole expired days, a bounded chunk at a time.

A span's day is the day of its arrival. With a span its text, generation, scores and feedback are
deleted; its contribution to hourly rollups stays. Text can have a shorter retention time; deleting
it changes no number. Engine samples and rollup minutes expire by their own timestamps.

On PostgreSQL a day is dropped as partitions, after the rows outside partitions that refer to it are
deleted; on SQLite its rows are deleted by id range.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from sqlalchemy import Connection, Select, delete, func, select

from collector.store import days, pair_counts, progress
from collector.store.tables import (
    content,
    engine_sample,
    engine_span,
    generation,
    rollup_minute,
    span,
)
from collector.store.upkeep import regressions
from collector.store.writer import Writer

_DAY_S: Final = 86_400
_NS: Final = 1_000_000_000
_ROWS: Final = 500
"""Spans per chunk: about 50 ms of work, because senders wait meanwhile."""
_OTHER_ROWS: Final = 5000


class Keep(NamedTuple):
    """Retention times; None keeps data forever."""

    spans_s: int | None = None
    content_s: int | None = None

    @property
    def everything(self) -> bool:
        """Whether nothing is ever deleted."""
        return self == Keep()


def step(writer: Writer, keep: Keep, now_unix_s: float) -> int:
    """Delete one chunk of expired rows and return how many; 0 if none are left.

    The transaction must exclude other writers.
    """
    if keep.content_s is not None:
        before = days.first_id_of(now_unix_s - keep.content_s)
        if done := writer.delete_content(before, _ROWS):
            return done
    if keep.spans_s is None:
        return 0
    before = days.first_id_of(now_unix_s - keep.spans_s)
    before_unix_s = days.day_of(before) * _DAY_S
    return (
        _delete_spans(writer, before)
        or _delete_samples(writer.connection, before_unix_s * _NS)
        or _delete_minutes(writer, before_unix_s)
    )


def due(connection: Connection, keep: Keep, now_unix_s: float) -> dict[str, int]:
    """Return how many rows of each table are expired, without the spans' scores and feedback."""
    found: dict[str, int] = {}
    ages = (
        (content, keep.content_s if keep.content_s is not None else keep.spans_s),
        (span, keep.spans_s),
        (generation, keep.spans_s),
    )
    for table, age_s in ages:
        if age_s is not None:
            old = table.c.id < days.first_id_of(now_unix_s - age_s)
            found[table.name] = _count(
                connection, select(func.count()).select_from(table).where(old)
            )
    if keep.spans_s is None:
        return found
    day = days.day_of(days.first_id_of(now_unix_s - keep.spans_s))
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


def _delete_spans(writer: Writer, before: int) -> int:
    connection = writer.connection
    floor = progress.read(connection, progress.RETAINED_FROM)
    if dropped := writer.drop_days(floor):
        return dropped
    if floor >= before:
        return 0
    end = writer.end_of_piece(floor, before, _ROWS)
    _note_latest_start(connection, floor, end)
    pair_counts.subtract_before(connection, end)
    regressions.forget_before(connection, end)
    connection.execute(delete(engine_span).where(engine_span.c.id < end))
    return writer.forget_spans(floor, end) or 1


def _note_latest_start(connection: Connection, floor: int, end: int) -> None:
    """Store the latest start of a deleted generation: up to it, rollups exceed the rows."""
    g = generation.c
    latest = connection.scalar(select(func.max(g.start_unix_ns)).where(g.id >= floor, g.id < end))
    if latest is not None and latest > progress.read(connection, progress.DELETED_START):
        progress.reach(connection, progress.DELETED_START, latest)


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
    """Yield the metrics' names by index skip scan: each query finds the next name."""
    e = engine_sample.c
    last = connection.scalar(select(func.min(e.metric)))
    while last is not None:
        yield last
        last = connection.scalar(select(func.min(e.metric)).where(e.metric > last))


def _delete_minutes(writer: Writer, before_unix_s: int) -> int:
    if progress.read(writer.connection, progress.MINUTES_FROM) < before_unix_s:
        progress.reach(writer.connection, progress.MINUTES_FROM, before_unix_s)
    return writer.delete_minutes(before_unix_s, _OTHER_ROWS)


def _last_of(connection: Connection, piece: Select[int]) -> int | None:
    ids = connection.scalars(piece).all()
    return ids[-1] if ids else None
