"""Generations of a rollout, in pages."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from collector.api import cursors
from collector.api.pages import After, Limit, Rollout, Text
from collector.api.problems import responses
from collector.api.state import Collector
from collector.contract import Arm, Generation, to_document
from collector.store import generations

router = APIRouter(prefix="/api/v1/generations", tags=["generations"])


class Generations(BaseModel):
    """A page of generations, in the order of arrival."""

    generations: list[Generation]
    next: str | None


@router.get("", response_model=Generations, responses=responses(400, 401, 403, 404, 422, 429, 503))
def list_generations(
    collector: Collector,
    rollout: Rollout,
    arm: Arm | None = None,
    cohort: str | None = None,
    *,
    content: Text,
    limit: Limit = 200,
    after: After = None,
) -> JSONResponse:
    """List a rollout's generations."""
    start = int(cursors.decode(after, [int])[0]) if after is not None else 0
    wanted = generations.Filter(rollout, arm, cohort)
    with collector.store.read() as connection:
        page = generations.page(connection, wanted, content=content, limit=limit, after=start)
    return JSONResponse(
        {
            "generations": [to_document(generation) for generation in page.generations],
            "next": cursors.encode(None if page.next is None else [page.next]),
        }
    )
