"""Reads of scores, and how their spans are stored."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, func, select, tuple_

from collector.contract import Score, ScoredSpan
from collector.store import rollouts
from collector.store.clickhouse import analytics_of
from collector.store.tables import generation as g
from collector.store.tables import score as s

_IDS_A_QUERY = 1000
_IDS_A_QUERY_ON_CLICKHOUSE = 16_000
_MORE_GENERATIONS = 8
_COLUMNS = (
    s.c.trace_id,
    s.c.span_id,
    s.c.metric,
    s.c.evaluator,
    s.c.version,
    s.c.value,
    s.c.label,
    s.c.explanation,
    s.c.unscored_reason,
    s.c.latency_s,
    s.c.cost_usd,
    s.c.spans,
)
_OF_GENERATION = and_(s.c.trace_id == g.c.trace_id, s.c.span_id == g.c.span_id)


class Latest(NamedTuple):
    """What the latest post says of a generation in one metric."""

    value: float | None
    unscored_reason: str | None
    judge: str | None
    """The evaluator's name and version."""


NO_SCORE: Final = Latest(None, None, None)


class ScorePosition(NamedTuple):
    """A score's place in the order of pages."""

    id: int
    """Its generation's id."""
    metric: str
    evaluator: str
    version: str


class ScorePage(NamedTuple):
    """Scores by generation, in the order of its arrival, then by metric, evaluator, version."""

    scores: tuple[Score, ...]
    next: ScorePosition | None


def page(
    connection: Connection,
    rollout: str,
    *,
    metric: str | None,
    limit: int,
    after: ScorePosition | None,
) -> ScorePage:
    """Return the scores of a rollout's generations after a position.

    Raises `NotFoundError` for an unknown rollout.
    """
    rollouts.require(connection, rollout)
    order = (g.c.id, s.c.metric, s.c.evaluator, s.c.version)
    statement = (
        select(g.c.id, *_COLUMNS).join_from(g, s, _OF_GENERATION).where(g.c.rollout == rollout)
    )
    if metric is not None:
        statement = statement.where(s.c.metric == metric)
    if after is not None:
        # The first condition lets the index skip; the second is exact.
        statement = statement.where(g.c.id >= after.id, tuple_(*order) > tuple_(*after))
    statement = statement.order_by(*order).limit(limit + 1)
    if analytics_of(connection) is None:
        rows = connection.execute(statement).all()
    else:
        rows = _in_pieces(connection, statement, rollout, 0 if after is None else after.id, limit)
    shown = rows[:limit]
    last = shown[-1] if len(rows) > limit else None
    return ScorePage(
        tuple(_score(row) for row in shown),
        None if last is None else ScorePosition(last.id, last.metric, last.evaluator, last.version),
    )


def _in_pieces(
    connection: Connection, statement: Select[Any], rollout: str, first_id: int, limit: int
) -> list[Any]:  # Any: rows of the statement
    """Answer from the scores of some generations after the other.

    For there a join reads both tables whole, whatever its limit, unless each is narrowed by itself.
    """
    rows: list[Any] = []
    size = limit + 2  # with the last one that is shown already, and the first that is not yet
    while len(rows) <= limit:
        of_rollout = (g.c.rollout == rollout, g.c.id >= first_id)
        later = select(g.c.id).where(*of_rollout).order_by(g.c.id).limit(1).offset(size)
        end_id: int | None = connection.scalar(later)
        some = of_rollout if end_id is None else (*of_rollout, g.c.id < end_id)
        near = s.c.trace_id.in_(select(g.c.trace_id).where(*some))
        rows += connection.execute(statement.where(*some, near)).all()
        if end_id is None:
            break
        # Where few are scored, few questions: what is read grows to all there is.
        first_id, size = end_id, size * _MORE_GENERATIONS
    return rows


def of_generations(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[Score, ...]]:
    """Return the scores of these generations by id, ordered; none, no entry."""
    found: dict[int, list[Score]] = defaultdict(list)
    for some in _of_some(connection, ids):
        # By way of generation: SQLite would scan all scores for a list of (trace id, span id).
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
    """Return the metrics that are scored in the rollout, sorted."""
    found = connection.scalars(
        select(s.c.metric)
        .join_from(g, s, _OF_GENERATION)
        .where(g.c.rollout == rollout, g.c.id > 0)  # by ids, for so the rows lie side by side
        .distinct()
    )
    return tuple(sorted(found))


def latest(
    connection: Connection, ids: Sequence[int], up_to: int | None = None
) -> dict[str, dict[int, Latest]]:
    """Return, for each metric, what each generation's latest post says, by id.

    Of posts up to a revision, or of all.
    """
    posted = [] if up_to is None else [s.c.revision <= up_to]
    found: dict[str, dict[int, tuple[int, Latest]]] = defaultdict(dict)
    columns = (s.c.metric, s.c.revision, s.c.value, s.c.unscored_reason, s.c.evaluator, s.c.version)
    for some in _of_some(connection, ids):
        rows = connection.execute(
            select(g.c.id, *columns).join_from(g, s, _OF_GENERATION).where(*some, *posted)
        )
        for id_, metric, revision, value, reason, evaluator, version in rows:
            known = found[metric].get(id_)
            if known is None or known[0] < revision:
                post = Latest(value, reason, f"{evaluator} {version}")
                found[metric][id_] = (revision, post)
    return {
        metric: {id_: post for id_, (_, post) in posts.items()} for metric, posts in found.items()
    }


def latest_values(connection: Connection, ids: Sequence[int]) -> dict[str, dict[int, float | None]]:
    """Return, for each metric, each generation's value in its latest post, by id.

    None is one whose latest score is a reason why there is no value.
    """
    return {
        metric: {id_: post.value for id_, post in posts.items()}
        for metric, posts in latest(connection, ids).items()
    }


def first_posts(connection: Connection, ids: Sequence[int]) -> dict[str, dict[int, int]]:
    """Return, for each metric, the revision of each generation's first post, by id.

    Scores that are posted again, or by another evaluator, do not change it.
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


def newest_revision(connection: Connection) -> int:
    """Return the revision of the last post; 0 where there is none."""
    if (analytics := analytics_of(connection)) is not None:
        # Of every row: to see which ones are replaced takes far longer.
        newest = analytics.ask("SELECT max(revision) FROM score", final=False)
        return newest.column(0)[0].as_py() or 0
    return connection.scalar(select(func.max(s.c.revision))) or 0


def _of_some(connection: Connection, ids: Sequence[int]) -> Iterator[list[ColumnElement[bool]]]:
    """Yield conditions on generations joined with scores, for some of these ids at a time."""
    clickhouse = analytics_of(connection) is not None
    size = _IDS_A_QUERY_ON_CLICKHOUSE if clickhouse else _IDS_A_QUERY
    for at in range(0, len(ids), size):
        some = g.c.id.in_(ids[at : at + size])
        # It joins with the whole table, unless that is narrowed by itself.
        near = [s.c.trace_id.in_(select(g.c.trace_id).where(some))] if clickhouse else []
        yield [some, *near]


def _score(row: Any) -> Score:  # Any: a row of _COLUMNS
    return Score(
        trace_id=row.trace_id.hex(),
        span_id=row.span_id.hex(),
        metric=row.metric,
        evaluator=row.evaluator,
        version=row.version,
        value=row.value,
        label=row.label,
        explanation=row.explanation,
        unscored_reason=row.unscored_reason,
        latency_s=row.latency_s,
        cost_usd=row.cost_usd,
        spans=None if row.spans is None else _load_spans(row.spans),
    )


def dump_spans(spans: Sequence[ScoredSpan]) -> str:
    """Return the spans as they are stored."""
    rows = [(span.start, span.end, span.support) for span in spans]
    return json.dumps(rows, separators=(",", ":"))


def _load_spans(text: str) -> tuple[ScoredSpan, ...]:
    return tuple(
        ScoredSpan(start=start, end=end, support=support)
        for start, end, support in json.loads(text)
    )
