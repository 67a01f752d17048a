"""Reads of pairs as records, in pages."""

from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from collector.contract import Content, Generation, Pair, PairKey, Score
from collector.store import rollouts, scores, sides
from collector.store.generation_rows import from_row
from collector.store.generations import contents
from collector.store.tables import generation as g


class PairPage(NamedTuple):
    """Pairs by (prompt id, repeat)."""

    pairs: tuple[Pair, ...]
    next: PairKey | None
    """The last key of this page where there are more."""


def page(
    connection: Connection,
    rollout: str,
    *,
    cohort: str | None,
    content: bool,
    limit: int,
    after: PairKey | None,
    only: PairKey | None = None,
) -> PairPage:
    """Return the pairs after a key, or the `only` one of a key, with their scores.

    Raises `NotFoundError` for an unknown rollout.
    """
    rollouts.require(connection, rollout)
    with closing(sides.read(connection, g.c, rollout, after, only=only)) as every:
        found = (pair for pair in every if cohort is None or pair.cohort == cohort)
        pairs = list(islice(found, limit + 1))
    shown = pairs[:limit]
    rows = [row for pair in shown for row in (pair.baseline, pair.candidate) if row is not None]
    texts = contents(connection, {row.id: row.dialect for row in rows}) if content else {}
    scored = scores.of_generations(connection, [row.id for row in rows])
    return PairPage(
        tuple(_pair(rollout, pair, texts, scored) for pair in shown),
        shown[-1].key if len(pairs) > limit else None,
    )


def _pair(
    rollout: str,
    pair: sides.Sides,
    texts: dict[int, Content | None],
    scored: dict[int, tuple[Score, ...]],
) -> Pair:
    return Pair(
        rollout=rollout,
        prompt_id=pair.key.prompt_id,
        repeat=pair.key.repeat,
        cohort=pair.cohort,
        baseline=_generation(pair.baseline, texts),
        candidate=_generation(pair.candidate, texts),
        baseline_scores=_scores(pair.baseline, scored),
        candidate_scores=_scores(pair.candidate, scored),
    )


# Any: rows of every column.
def _generation(row: Row[Any] | None, texts: dict[int, Content | None]) -> Generation | None:
    # Public, the underscore only keeps it from being a column.
    return None if row is None else from_row(row._mapping, texts.get(row.id))  # noqa: SLF001


def _scores(row: Row[Any] | None, scored: dict[int, tuple[Score, ...]]) -> tuple[Score, ...]:
    return () if row is None else scored.get(row.id, ())
