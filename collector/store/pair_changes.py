"""Pairs of a rollout that changed since a position, each in its current state.

A position is two numbers: the id of the last generation and the revision of the last score. Both
grow with every commit. A window between two positions contains the pairs of which a generation or a
first score arrived in it. Each row also has the ids of its first generations and the revisions of
its first scores, so that a reader who stores only the position counts each pair once, even if spans
or scores are sent again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from sqlalchemy import Connection, and_, func, select

from collector.store import pairs_arrow, rollouts, scores
from collector.store.evidence import pairing
from collector.store.reader import StoreConnection
from collector.store.tables import generation as g
from collector.store.tables import score as s
from collector.store.tables import span_key as k

_AT_MOST = 20_000
"""Generations, and also scores, in one window."""
_OF_SCORE = and_(k.c.trace_id == s.c.trace_id, k.c.span_id == s.c.span_id)


class Position(NamedTuple):
    """How far a reader has read."""

    generation: int
    score: int


class Changes(NamedTuple):
    """The pairs of a window, and the position of its end."""

    table: pa.Table
    position: Position
    more: bool
    """Whether later changes are stored already."""


def since(connection: StoreConnection, rollout: str, position: Position) -> Changes:
    """Return the pairs with a generation that arrived, or a score first posted, after the position.

    The columns of `pairs_arrow`, plus for each side `arrival`, the id of its first generation, and
    `scored_{metric}`, the revision of its first score; null if it has none. Raises `NotFoundError`
    for an unknown rollout.
    """
    rollouts.require(connection, rollout)
    newest = _newest(connection)
    score = min(position.score + _AT_MOST, max(newest.score, position.score))
    reached = Position(_generation_after(connection, rollout, position, newest), score)
    keys = _keys(connection, rollout, position, reached)
    prompts = sorted({prompt_id for prompt_id, _ in keys})
    found = pairing.of_prompts(connection, pairs_arrow.COLUMNS, rollout, prompts)
    table = _table(connection, [one for one in found if one.key in keys])
    more = reached.generation < newest.generation or reached.score < newest.score
    return Changes(table, reached, more)


def _newest(connection: StoreConnection) -> Position:
    last = connection.scalar(select(func.max(g.c.id))) or 0
    return Position(last, connection.reader.newest_revision())


def _generation_after(
    connection: Connection, rollout: str, position: Position, newest: Position
) -> int:
    ids = connection.scalars(
        select(g.c.id)
        .where(g.c.rollout == rollout, g.c.id > position.generation, g.c.id <= newest.generation)
        .order_by(g.c.id)
        .limit(_AT_MOST)
    ).all()
    return ids[-1] if len(ids) == _AT_MOST else max(newest.generation, position.generation)


def _keys(
    connection: Connection, rollout: str, position: Position, reached: Position
) -> set[tuple[str, int]]:
    arrived = select(g.c.prompt_id, g.c.repeat).where(
        g.c.rollout == rollout, g.c.id > position.generation, g.c.id <= reached.generation
    )
    judged = (
        select(g.c.prompt_id, g.c.repeat)
        .select_from(s)
        .join(k, _OF_SCORE)
        .join(g, g.c.id == k.c.id)
        .where(
            s.c.revision > position.score,
            s.c.first_revision > position.score,
            s.c.first_revision <= reached.score,
            g.c.rollout == rollout,
        )
    )
    rows = [*connection.execute(arrived), *connection.execute(judged)]
    return {(row[0], row[1]) for row in rows if row[0] is not None and row[1] is not None}


def _table(connection: StoreConnection, pairs: Sequence[pairing.Sides]) -> pa.Table:
    ids = [id_ for pair in pairs for id_ in (*pair.baseline_ids, *pair.candidate_ids)]
    values = pairs_arrow.scored_of(connection, pairs)
    first = scores.first_posts(connection, ids)
    metrics = sorted(first)
    schema = pairs_arrow.schema(metrics)
    table = schema.empty_table()
    if pairs:
        table = pa.Table.from_arrays(pairs_arrow.arrays(pairs, metrics, values), schema=schema)
    for side in ("baseline", "candidate"):
        ids_of = [pair.baseline_ids if side == "baseline" else pair.candidate_ids for pair in pairs]
        arrivals = [min(given, default=None) for given in ids_of]
        table = table.append_column(f"{side}_arrival", pa.array(arrivals, pa.int64()))
        for metric in metrics:
            posted = pa.array([_first(given, first[metric]) for given in ids_of], pa.int64())
            table = table.append_column(f"{side}_scored_{metric}", posted)
    return table


def _first(ids: Iterable[int], posted: Mapping[int, int]) -> int | None:
    return min((posted[id_] for id_ in ids if id_ in posted), default=None)
