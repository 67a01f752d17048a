"""Regressions: pairs whose candidate scored lower than the baseline, updated as scores arrive.

A pair has one row for each metric in which it regressed, and one row with an empty metric name for
the metric with the largest loss. Upkeep updates the table up to two positions: a score revision and
a generation id, because a score may be stored before its generation.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, insert, select, tuple_

from collector.contract import PairKey, Regression
from collector.store import progress, rollouts, scores
from collector.store.evidence import generations, pairing
from collector.store.reader import StoreConnection
from collector.store.row_records import record_of
from collector.store.tables import generation as g
from collector.store.tables import regression as r
from collector.store.tables import score as s
from collector.store.tables import span_key as k

COUNTED_AT_MOST: Final = 10_000
_ANY: Final = ""
"""Stands for the metric with the pair's largest loss; no metric has this name."""
_GENERATIONS_A_SCORE: Final = 10
"""Generations processed per step, per score: few generations have scores before they arrive."""


class RegressionPosition(NamedTuple):
    """A cursor: the last regression of a page."""

    change: float
    prompt_id: str
    repeat: int


class RegressionFilter(NamedTuple):
    """Which regressions to read; without a metric each pair appears once, with its largest loss."""

    rollout: str
    cohort: str | None = None
    metric: str | None = None


class RegressionListing(NamedTuple):
    """A page of regressions, the largest loss first."""

    regressions: tuple[Regression, ...]
    next: RegressionPosition | None
    metrics: tuple[str, ...]
    """All metrics in which a pair of the rollout regressed."""
    counted: int
    """The number of matching regressions, at most `COUNTED_AT_MOST`."""
    waiting_scores: int
    """Score posts of any rollout that are not processed yet."""


def page(
    connection: StoreConnection,
    wanted: RegressionFilter,
    *,
    limit: int,
    after: RegressionPosition | None,
) -> RegressionListing:
    """Return the regressions after a cursor; raises `NotFoundError` for an unknown rollout."""
    rollouts.require(connection, wanted.rollout)
    waiting = connection.reader.newest_revision() - progress.read(connection, progress.JUDGED)
    of = generations.GenerationFilter(wanted.rollout, cohort=wanted.cohort)
    if not generations.exists(connection, of):
        return RegressionListing((), None, (), 0, max(waiting, 0))
    here = _here(wanted)
    order = (r.c.change, r.c.prompt_id, r.c.repeat)
    beyond = () if after is None else (tuple_(*order) > tuple_(*after),)
    rows = connection.execute(select(r).where(*here, *beyond).order_by(*order).limit(limit + 1))
    found = [_regression(row) for row in rows]
    counted = select(r.c.change).where(*here).limit(COUNTED_AT_MOST).subquery()
    last = found[limit - 1] if len(found) > limit else None
    return RegressionListing(
        tuple(found[:limit]),
        None if last is None else RegressionPosition(last.change, last.prompt_id, last.repeat),
        tuple(_metrics(connection, wanted.rollout)),
        connection.scalar(select(func.count()).select_from(counted)) or 0,
        max(waiting, 0),
    )


def any_waiting(connection: StoreConnection) -> bool:
    """Return whether there are unprocessed scores, or generations that may have earlier scores."""
    newest = connection.reader.newest_revision()
    if newest > progress.read(connection, progress.JUDGED):
        return True
    last = connection.scalar(select(func.max(g.c.id))) or 0
    return newest > 0 and last > progress.read(connection, progress.JUDGED_GENERATIONS)


def advance(connection: StoreConnection, *, at_most: int) -> int:
    """Process the pairs of the next scores and generations; return how many of both."""
    after = progress.read(connection, progress.JUDGED)
    posts = connection.scalars(
        select(s.c.revision).where(s.c.revision > after).order_by(s.c.revision).limit(at_most)
    ).all()
    known = progress.read(connection, progress.JUDGED_GENERATIONS)
    most = at_most * _GENERATIONS_A_SCORE
    ids = connection.scalars(select(g.c.id).where(g.c.id > known).order_by(g.c.id).limit(most))
    arrived = ids.all()
    keys: set[tuple[str, PairKey]] = set()
    if posts:
        keys |= _judged(connection, after, posts[-1])
        progress.reach(connection, progress.JUDGED, posts[-1])
    if arrived:
        keys |= _judged_before(connection, known, arrived[-1])
        progress.reach(connection, progress.JUDGED_GENERATIONS, arrived[-1])
    by_rollout: dict[str, set[PairKey]] = defaultdict(set)
    for rollout, key in keys:
        by_rollout[rollout].add(key)
    for rollout, of in by_rollout.items():
        _renew(connection, rollout, of)
    return len(posts) + len(arrived)


def forget_before(connection: Connection, id_: int) -> None:
    """Delete the regressions of pairs with a generation before this id."""
    connection.execute(delete(r).where(r.c.first_id < id_))


def _here(wanted: RegressionFilter) -> list[ColumnElement[bool]]:
    here = [r.c.rollout == wanted.rollout, r.c.metric == (wanted.metric or _ANY)]
    return here if wanted.cohort is None else [*here, r.c.cohort == wanted.cohort]


def _metrics(connection: Connection, rollout: str) -> Iterator[str]:
    """Yield the metrics' names by index skip scan: each query finds the next name."""
    next_ = select(func.min(r.c.metric)).where(r.c.rollout == rollout)
    last = connection.scalar(next_.where(r.c.metric > _ANY))
    while last is not None:
        yield last
        last = connection.scalar(next_.where(r.c.metric > last))


def _judged(connection: StoreConnection, after: int, up_to: int) -> set[tuple[str, PairKey]]:
    """Return the pairs of the generations scored in a range of revisions."""
    posted = (s.c.revision > after, s.c.revision <= up_to)
    traces = select(s.c.trace_id).where(*posted)
    near = [one for table in (k, g) for one in connection.reader.near(table.c.trace_id, traces)]
    of_span = and_(k.c.trace_id == s.c.trace_id, k.c.span_id == s.c.span_id)
    found = _keys().select_from(s).join(k, of_span).join(g, g.c.id == k.c.id).where(*posted, *near)
    return set(_read_keys(connection, found))


def _judged_before(connection: StoreConnection, after: int, up_to: int) -> set[tuple[str, PairKey]]:
    """Return the pairs of the generations in a range of ids that already have a score."""
    arrived = (g.c.id > after, g.c.id <= up_to)
    near = connection.reader.near(s.c.trace_id, select(g.c.trace_id).where(*arrived))
    of_generation = and_(s.c.trace_id == g.c.trace_id, s.c.span_id == g.c.span_id)
    found = _keys().select_from(g).join(s, of_generation).where(*arrived, *near)
    return set(_read_keys(connection, found))


def _keys() -> Any:  # Any: a Select of columns of three types, with nulls left out
    named = (g.c.rollout, g.c.prompt_id, g.c.repeat)
    return select(*named).where(*(column.is_not(None) for column in named))


# Any: as above.
def _read_keys(connection: Connection, wanted: Any) -> Iterator[tuple[str, PairKey]]:
    for rollout, prompt_id, repeat in connection.execute(wanted):
        yield rollout, PairKey(prompt_id, repeat)


def _renew(connection: StoreConnection, rollout: str, keys: set[PairKey]) -> None:
    """Recompute the regressions of these pairs of a rollout."""
    prompts = sorted({key.prompt_id for key in keys})
    repeats = sorted({key.repeat for key in keys})
    connection.execute(
        delete(r).where(r.c.rollout == rollout, r.c.prompt_id.in_(prompts), r.c.repeat.in_(repeats))
    )
    pairs = list(pairing.of_prompts(connection, (g.c.cohort,), rollout, prompts, repeats))
    both = (side for pair in pairs for side in (pair.baseline, pair.candidate))
    values = scores.latest_values(connection, [side.id for side in both if side is not None])
    rows = [row for pair in pairs for row in _rows(rollout, pair, values)]
    if rows:
        connection.execute(insert(r), rows)


def _rows(
    rollout: str, pair: pairing.Sides, values: dict[str, dict[int, float | None]]
) -> Sequence[dict[str, Any]]:  # Any: each of its column's type
    if pair.baseline is None or pair.candidate is None:
        return ()
    both = (pair.baseline.id, pair.candidate.id)
    lost = [
        {
            "rollout": rollout,
            "prompt_id": pair.key.prompt_id,
            "repeat": pair.key.repeat,
            "metric": metric,
            "of_metric": metric,
            "cohort": pair.cohort,
            "baseline": baseline,
            "candidate": candidate,
            "change": candidate - baseline,
            "first_id": min(both),
        }
        for metric, baseline, candidate in _scored(values, *both)
        if candidate < baseline
    ]
    worst = min(lost, key=lambda row: (row["change"], row["metric"]), default=None)
    return lost if worst is None else [*lost, worst | {"metric": _ANY}]


def _scored(
    values: dict[str, dict[int, float | None]], baseline: int, candidate: int
) -> Iterable[tuple[str, float, float]]:
    for metric, of in values.items():
        before, after = of.get(baseline), of.get(candidate)
        if before is not None and after is not None:
            yield metric, before, after


def _regression(row: Row[Any]) -> Regression:  # Any: of the table
    return record_of(Regression, row, metric=row.of_metric)
