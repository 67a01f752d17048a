"""Reads of scores, and the stored form of their scored spans."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, and_, case, func, select, tuple_

from collector.contract import Score, ScoredSpan
from collector.store import rollouts
from collector.store.pages import Page, page_of
from collector.store.reader import StoreConnection
from collector.store.row_records import record_of
from collector.store.tables import generation as g
from collector.store.tables import score as s

_COLUMNS = tuple(s.c[field.name] for field in fields(Score))
_OF_GENERATION = and_(s.c.trace_id == g.c.trace_id, s.c.span_id == g.c.span_id)


class LatestScore(NamedTuple):
    """The latest score posted for a generation in one metric."""

    value: float | None
    unscored_reason: str | None
    judge: str | None
    """The evaluator's name and version."""
    label: str | None = None
    """Of schema validity only, as are the following."""
    fault_at: int | None = None
    """Characters of the answer before the place at which it breaks."""
    fault_of: int | None = None
    """Characters of the answer."""


NO_SCORE: Final = LatestScore(None, None, None)
WITH_FAULTS: Final = "schema_validity"
"""The metric whose scores say what breaks an answer, and where."""


class ScorePosition(NamedTuple):
    """A cursor: the last score of a page."""

    id: int
    """The generation's id."""
    metric: str
    evaluator: str
    version: str


def page(
    connection: StoreConnection,
    rollout: str,
    *,
    metric: str | None,
    limit: int,
    after: ScorePosition | None,
) -> Page[Score, ScorePosition]:
    """Return the scores of a rollout's generations after a cursor.

    Ordered by the generation's arrival, then by metric, evaluator and version. Raises
    `NotFoundError` for an unknown rollout.
    """
    rollouts.require(connection, rollout)
    order = (g.c.id, s.c.metric, s.c.evaluator, s.c.version)
    statement = (
        select(g.c.id, *_COLUMNS).join_from(g, s, _OF_GENERATION).where(g.c.rollout == rollout)
    )
    if metric is not None:
        statement = statement.where(s.c.metric == metric)
    if after is not None:
        # The first condition uses the index; the second is exact.
        statement = statement.where(g.c.id >= after.id, tuple_(*order) > tuple_(*after))
    statement = statement.order_by(*order)
    first_id = 0 if after is None else after.id
    rows = connection.reader.rows_of_scores(statement, rollout, first_id, limit + 1)
    return page_of(
        rows,
        limit,
        _score,
        lambda row: ScorePosition(row.id, row.metric, row.evaluator, row.version),
    )


def of_generations(connection: StoreConnection, ids: Sequence[int]) -> dict[int, tuple[Score, ...]]:
    """Return the scores of these generations by id, ordered; omit generations without scores."""
    found: dict[int, list[Score]] = defaultdict(list)
    for some in _of_some(connection, ids):
        # Joined with generation: for a list of (trace id, span id) SQLite would scan all scores.
        rows = connection.execute(
            select(g.c.id, *_COLUMNS)
            .join_from(g, s, _OF_GENERATION)
            .where(*some)
            .order_by(s.c.metric, s.c.evaluator, s.c.version)
        )
        for row in rows:
            found[row.id].append(_score(row))
    return {id_: tuple(scores) for id_, scores in found.items()}


def metrics_of(connection: Connection, rollout: str) -> tuple[str, ...]:
    """Return the metrics with scores in the rollout, sorted."""
    found = connection.scalars(
        select(s.c.metric)
        .join_from(g, s, _OF_GENERATION)
        .where(g.c.rollout == rollout, g.c.id > 0)  # id > 0: read in id order, as rows are stored
        .distinct()
    )
    return tuple(sorted(found))


def latest(
    connection: StoreConnection, ids: Sequence[int], up_to: int | None = None
) -> dict[str, dict[int, LatestScore]]:
    """Return, for each metric, each generation's latest score, by id.

    Only posts up to the revision `up_to` count, if given.
    """
    posted = [] if up_to is None else [s.c.revision <= up_to]
    found: dict[str, dict[int, tuple[int, LatestScore]]] = defaultdict(dict)
    columns = (s.c.metric, s.c.revision, s.c.value, s.c.unscored_reason, s.c.evaluator, s.c.version)
    of_faults = s.c.metric == WITH_FAULTS
    faults = (case((of_faults, s.c.label)), case((of_faults, s.c.spans)))
    for some in _of_some(connection, ids):
        rows = connection.execute(
            select(g.c.id, *columns, *faults).join_from(g, s, _OF_GENERATION).where(*some, *posted)
        )
        for id_, metric, revision, value, reason, evaluator, version, label, spans in rows:
            known = found[metric].get(id_)
            if known is None or known[0] < revision:
                place = _fault(spans)
                post = LatestScore(value, reason, f"{evaluator} {version}", label, *place)
                found[metric][id_] = (revision, post)
    return {
        metric: {id_: post for id_, (_, post) in posts.items()} for metric, posts in found.items()
    }


def latest_values(
    connection: StoreConnection, ids: Sequence[int]
) -> dict[str, dict[int, float | None]]:
    """Return, for each metric, the value of each generation's latest score, by id.

    None if the latest post has no value but an `unscored_reason`.
    """
    return {
        metric: {id_: post.value for id_, post in posts.items()}
        for metric, posts in latest(connection, ids).items()
    }


def first_posts(connection: StoreConnection, ids: Sequence[int]) -> dict[str, dict[int, int]]:
    """Return, for each metric, the revision of each generation's first score, by id.

    Later posts, also by another evaluator, do not change it.
    """
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for some in _of_some(connection, ids):
        rows = connection.execute(
            select(g.c.id, s.c.metric, func.min(s.c.first_revision))
            .join_from(g, s, _OF_GENERATION)
            .where(*some)
            .group_by(g.c.id, s.c.metric)
        )
        for id_, metric, revision in rows:
            found[metric][id_] = revision
    return found


def _of_some(
    connection: StoreConnection, ids: Sequence[int]
) -> Iterator[list[ColumnElement[bool]]]:
    """Yield conditions on generations joined with scores, for one batch of the ids at a time."""
    size = connection.reader.ids_a_query
    for at in range(0, len(ids), size):
        some = g.c.id.in_(ids[at : at + size])
        yield [some, *connection.reader.near(s.c.trace_id, select(g.c.trace_id).where(some))]


def _score(row: Row[Any]) -> Score:  # of _COLUMNS
    return record_of(
        Score,
        row,
        trace_id=row.trace_id.hex(),
        span_id=row.span_id.hex(),
        spans=None if row.spans is None else _load_spans(row.spans),
    )


def _fault(spans: str | None) -> tuple[int | None, int | None]:
    """Return the start and the end of the first stored span; None if there is none."""
    rows = json.loads(spans) if spans else []
    return (rows[0][0], rows[0][1]) if rows else (None, None)


def dump_spans(spans: Sequence[ScoredSpan]) -> str:
    """Return the scored spans as stored JSON."""
    rows = [(span.start, span.end, span.support) for span in spans]
    return json.dumps(rows, separators=(",", ":"))


def _load_spans(text: str) -> tuple[ScoredSpan, ...]:
    return tuple(
        ScoredSpan(start=start, end=end, support=support)
        for start, end, support in json.loads(text)
    )
