"""Reads of pairs as records, page by page."""

from collections.abc import Iterable
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, select

from collector.contract import Content, Generation, Pair, PairKey, Score
from collector.store import rollouts, scores
from collector.store.evidence import generations, pairing
from collector.store.evidence.generations import ContentOf
from collector.store.generation_rows import from_row
from collector.store.pages import Page
from collector.store.reader import StoreConnection
from collector.store.tables import generation as g


class Completed(NamedTuple):
    """A pair whose sides have both arrived."""

    pair: Pair
    candidate_id: int


def page(
    connection: StoreConnection,
    rollout: str,
    *,
    cohort: str | None,
    content_of: ContentOf | None,
    limit: int,
    after: PairKey | None,
    only: PairKey | None = None,
) -> Page[Pair, PairKey]:
    """Return the pairs after the key `after`, or only the pair with the key `only`, with scores.

    Ordered by prompt id and repeat. Raises `NotFoundError` for an unknown rollout.
    """
    rollouts.require(connection, rollout)
    if not generations.exists(connection, generations.GenerationFilter(rollout, cohort=cohort)):
        return Page((), None)
    with closing(pairing.read(connection, g.c, rollout, after, only=only)) as every:
        found = (pair for pair in every if cohort is None or pair.cohort == cohort)
        pairs = list(islice(found, limit + 1))
    shown = pairs[:limit]
    rows = [row for pair in shown for row in (pair.baseline, pair.candidate) if row is not None]
    texts = _texts(connection, rows, content_of)
    scored = scores.of_generations(connection, [row.id for row in rows])
    return Page(
        tuple(_pair(rollout, pair, texts, scored) for pair in shown),
        shown[-1].key if len(pairs) > limit else None,
    )


def completed(
    connection: Connection, rollout: str, after: int, up_to: int, *, content_of: ContentOf | None
) -> tuple[Completed, ...]:
    """Return the pairs whose later side has an id in (after, up_to], without scores."""
    here = (g.c.rollout == rollout, g.c.id > after, g.c.id <= up_to)
    arrived = select(g.c.prompt_id).where(*here, g.c.prompt_id.is_not(None)).distinct()
    prompts = sorted(connection.scalars(arrived))
    found = [
        (pair, pair.candidate.id, max(pair.baseline.id, pair.candidate.id))
        for pair in pairing.of_prompts(connection, g.c, rollout, prompts)
        if pair.baseline is not None and pair.candidate is not None
    ]
    found = [one for one in found if after < one[2] <= up_to]
    rows = [row for pair, *_ in found for row in (pair.baseline, pair.candidate) if row is not None]
    texts = _texts(connection, rows, content_of)
    return tuple(
        Completed(_pair(rollout, pair, texts, {}), candidate_id) for pair, candidate_id, _ in found
    )


def _texts(
    connection: Connection, rows: Iterable[Row[Any]], content_of: ContentOf | None
) -> dict[int, Content | None]:
    return generations.contents(connection, {row.id: row.dialect for row in rows}, content_of)


def _pair(
    rollout: str,
    pair: pairing.Sides,
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
    # `_mapping` is public API: the underscore only avoids a clash with column names.
    return None if row is None else from_row(row._mapping, texts.get(row.id))  # noqa: SLF001


def _scores(row: Row[Any] | None, scored: dict[int, tuple[Score, ...]]) -> tuple[Score, ...]:
    return () if row is None else scored.get(row.id, ())
