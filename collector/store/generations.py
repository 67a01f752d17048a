"""Reads of generations, in pages."""

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, select

from collector.contract import Arm, Content, Generation
from collector.dialects import content as content_of
from collector.store import payload, rollouts
from collector.store.generation_rows import from_row
from collector.store.tables import content as content_table
from collector.store.tables import generation as g

_IDS_A_QUERY = 1000


class GenerationPage(NamedTuple):
    """Generations in the order of arrival."""

    generations: tuple[Generation, ...]
    next: int | None
    """Where the next page begins; None on the last."""


class Filter(NamedTuple):
    """Which generations of a rollout."""

    rollout: str
    arm: Arm | None = None
    cohort: str | None = None


def page(
    connection: Connection, wanted: Filter, *, content: bool, limit: int, after: int
) -> GenerationPage:
    """Return the generations that arrived after the one with id `after`.

    Raises `NotFoundError` for an unknown rollout.
    """
    rollouts.require(connection, wanted.rollout)
    statement = select(g).where(g.c.rollout == wanted.rollout, g.c.id > after)
    if wanted.arm is not None:
        statement = statement.where(g.c.arm == wanted.arm.value)
    if wanted.cohort is not None:
        statement = statement.where(g.c.cohort == wanted.cohort)
    rows = connection.execute(statement.order_by(g.c.id).limit(limit + 1)).mappings().all()
    shown = rows[:limit]
    texts = contents(connection, {row["id"]: row["dialect"] for row in shown}) if content else {}
    return GenerationPage(
        tuple(from_row(row, texts.get(row["id"])) for row in shown),
        shown[-1]["id"] if len(rows) > limit else None,
    )


def contents(connection: Connection, dialects: dict[int, str]) -> dict[int, Content | None]:
    """Return the content of generations by id, given each one's dialect; no text, no entry."""
    return {
        row.id: content_of(dialects[row.id], payload.unpack_attributes(row.attributes))
        for ids in _chunks(sorted(dialects))
        for row in connection.execute(select(content_table).where(content_table.c.id.in_(ids)))
    }


def _chunks(ids: list[int]) -> Iterable[list[int]]:
    return (ids[at : at + _IDS_A_QUERY] for at in range(0, len(ids), _IDS_A_QUERY))
