"""Generations, as pages or an Arrow stream."""

from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel

from collector import dialects
from collector.api import arrow, cursors
from collector.api.documents import Documents
from collector.api.pages import After, Cohort, Limit, Text
from collector.api.problems import LISTS
from collector.api.routing import DescribedRoute
from collector.api.state import Collector
from collector.contract import Arm, Generation
from collector.contract.fields import NAMES
from collector.errors import RequestError
from collector.store import generations_arrow
from collector.store.evidence import generations

router = APIRouter(prefix="/api/v1/generations", tags=["generations"], route_class=DescribedRoute)


class Order(StrEnum):
    """Order of arrival."""

    OLDEST = "oldest"
    NEWEST = "newest"


class GenerationPage(BaseModel):
    """A page of generations in the requested order."""

    generations: list[Generation]
    next: str | None


Since = Annotated[date | None, Query(description="Arrived on this day (UTC) or later.")]
Until = Annotated[date | None, Query(description="Arrived before this day (UTC).")]
Fields = Annotated[
    Sequence[str], Query(alias="field", description="Only this column; repeatable. Arrow only.")
]
Scores = Annotated[bool, Query(alias="scores", description="Include scores; Arrow only.")]


@router.get(
    "",
    response_model=GenerationPage,
    responses={200: arrow.OPENAPI, **LISTS},
)
def list_generations(  # noqa: PLR0913  # one parameter per query parameter
    collector: Collector,
    rollout: Annotated[
        str | None, Query(description="Absent: all generations, with or without a rollout.")
    ] = None,
    arm: Annotated[Arm | None, Query(description="Only this arm.")] = None,
    cohort: Cohort = None,
    arrived_since: Since = None,
    arrived_until: Until = None,
    *,
    content: Text,
    with_scores: Scores = False,
    fields: Fields = (),
    order: Annotated[Order, Query(description="Order of arrival.")] = Order.OLDEST,
    limit: Limit = 200,
    after: After = None,
    accept: arrow.Accept = None,
) -> Response:
    """List generations in the order of arrival, or newest first.

    With `Accept: application/vnd.apache.arrow.stream` the response is one Arrow stream of all of
    them, and limit and after are ignored.
    """
    wanted = generations.GenerationFilter(rollout, arm, cohort, arrived_since, arrived_until)
    content_of = dialects.content if content else None
    newest = order is Order.NEWEST
    if arrow.is_wanted(accept):
        with collector.store.read() as connection:
            generations.check(connection, wanted)
        extras = generations_arrow.Extras(content_of, with_scores, _known(fields))
        return arrow.respond(
            generations_arrow.schema(extras),
            generations_arrow.batches(collector.store, wanted, extras, newest=newest),
        )
    start = cursors.decode(after, generations.GenerationPosition)
    with collector.store.read() as connection:
        page = generations.page(
            connection, wanted, content_of=content_of, limit=limit, after=start, newest=newest
        )
    return Documents({"generations": page.records, "next": cursors.encode(page.next)})


def _known(fields: Sequence[str]) -> tuple[str, ...]:
    for name in fields:
        if name not in NAMES:
            raise RequestError(f"field={name[:60]!r}: is not a field; known are {', '.join(NAMES)}")
    return tuple(dict.fromkeys(fields)) or tuple(NAMES)
