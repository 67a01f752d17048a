"""Reads of generations, in pages."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, select

from collector.contract import Arm, AttributeValue, Content, Generation
from collector.errors import RequestError
from collector.store import days, rollouts, rollup_reads, texts
from collector.store.generation_rows import from_row
from collector.store.pages import Page, page_of
from collector.store.tables import generation as g

_BEYOND = 2**63 - 1
"""Larger than every id."""
_EPOCH = date(1970, 1, 1)


ContentOf = Callable[[str, Mapping[str, AttributeValue]], Content | None]
"""Returns a generation's content, given its dialect and its text attributes."""


class GenerationPosition(NamedTuple):
    """A cursor: the last generation of a page."""

    id: int


class GenerationFilter(NamedTuple):
    """Which generations to read; None does not filter."""

    rollout: str | None
    arm: Arm | None = None
    """Requires a rollout, as `cohort` does."""
    cohort: str | None = None
    arrived_since: date | None = None
    """The first day of arrival, inclusive, in UTC."""
    arrived_until: date | None = None
    """The last day of arrival, exclusive, in UTC."""


def page(  # all but two by keyword
    connection: Connection,
    wanted: GenerationFilter,
    *,
    content_of: ContentOf | None,
    limit: int,
    after: GenerationPosition | None = None,
    newest: bool = False,
) -> Page[Generation, GenerationPosition]:
    """Return the generations after the id `after` in the order of arrival, or newest first.

    Raises `NotFoundError` for an unknown rollout, and `RequestError` for an arm or cohort without a
    rollout.
    """
    check(connection, wanted)
    if not exists(connection, wanted):
        return Page((), None)
    last = (_BEYOND if newest else 0) if after is None else after.id
    statement = (
        select(g)
        .where(*conditions(wanted), g.c.id < last if newest else g.c.id > last)
        .order_by(g.c.id.desc() if newest else g.c.id)
    )
    rows = connection.execute(statement.limit(limit + 1)).mappings().all()
    texts = contents(connection, {row["id"]: row["dialect"] for row in rows[:limit]}, content_of)
    return page_of(
        rows,
        limit,
        lambda row: from_row(row, texts.get(row["id"])),
        lambda row: GenerationPosition(row["id"]),
    )


def between(
    connection: Connection, rollout: str, after: int, up_to: int, *, content_of: ContentOf | None
) -> tuple[list[int], tuple[Generation, ...]]:
    """Return the ids and the records of the rollout's generations in (after, up_to], by id."""
    here = (g.c.rollout == rollout, g.c.id > after, g.c.id <= up_to)
    rows = connection.execute(select(g).where(*here).order_by(g.c.id)).mappings().all()
    texts = contents(connection, {row["id"]: row["dialect"] for row in rows}, content_of)
    found = tuple(from_row(row, texts.get(row["id"])) for row in rows)
    return [row["id"] for row in rows], found


def oldest_of(connection: Connection, rollout: str, newest: int) -> int:
    """Return the id of a rollout's generation number `newest` from the end; 0 if it has fewer."""
    ids = select(g.c.id).where(g.c.rollout == rollout).order_by(g.c.id.desc())
    return connection.scalar(ids.limit(1).offset(newest - 1)) or 0


def check(connection: Connection, wanted: GenerationFilter) -> None:
    """Raise for an invalid filter.

    `NotFoundError` for an unknown rollout, `RequestError` for an arm or cohort without a rollout.
    """
    if wanted.rollout is not None:
        rollouts.require(connection, wanted.rollout)
    elif wanted.arm is not None or wanted.cohort is not None:
        raise RequestError("arm and cohort are those of a rollout: name it with rollout=")


def exists(connection: Connection, wanted: GenerationFilter) -> bool:
    """Return whether the rollout has the arm and the cohort.

    Checked first because a query for a missing one would scan the whole rollout.
    """
    if wanted.arm is None and wanted.cohort is None:
        return True
    return any(
        (wanted.arm is None or series.arm == wanted.arm)
        and (wanted.cohort is None or series.cohort == wanted.cohort)
        for series in rollup_reads.series_of(connection, wanted.rollout).values()
    )


def conditions(wanted: GenerationFilter) -> list[ColumnElement[bool]]:
    """Return the filter as SQL conditions."""
    found: list[ColumnElement[bool]] = []
    if wanted.rollout is not None:
        found.append(g.c.rollout == wanted.rollout)
    if wanted.arm is not None:
        found.append(g.c.arm == wanted.arm.value)
    if wanted.cohort is not None:
        found.append(g.c.cohort == wanted.cohort)
    if wanted.arrived_since is not None:
        found.append(g.c.id >= _first_id_of(wanted.arrived_since))
    if wanted.arrived_until is not None:
        found.append(g.c.id < _first_id_of(wanted.arrived_until))
    return found


def contents(
    connection: Connection, dialects: dict[int, str], content_of: ContentOf | None
) -> dict[int, Content | None]:
    """Return the content of generations by id, given their dialects; omit those without text."""
    if content_of is None:
        return {}
    return {
        id_: content_of(dialects[id_], attributes)
        for id_, attributes in texts.read(connection, dialects.keys()).items()
    }


def _first_id_of(day: date) -> int:
    return max(days.first_id_of((day - _EPOCH).total_seconds()), 0)
