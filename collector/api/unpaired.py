"""Generations that are no side of a pair, and why."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from collector.api.problems import responses
from collector.api.state import Collector
from collector.contract import Unpaired, to_document
from collector.store import rollouts, unpaired

router = APIRouter(prefix="/api/v1/unpaired", tags=["pairs"])


class UnpairedGroups(BaseModel):
    """What does not pair, by reason and sender."""

    unpaired: list[Unpaired]
    looked_at: int = Field(description="The newest generations, among which they were found.")


@router.get(
    "", response_model=UnpairedGroups, responses=responses(400, 401, 403, 404, 422, 429, 503)
)
def list_unpaired(
    collector: Collector,
    rollout: Annotated[str | None, Query(description="Of one rollout; absent: of all.")] = None,
) -> JSONResponse:
    """List what does not pair among the newest generations, the most frequent first."""
    with collector.store.read() as connection:
        if rollout is not None:
            rollouts.require(connection, rollout)
        found = unpaired.find(connection, rollout)
    groups = [to_document(group) for group in found.groups]
    return JSONResponse({"unpaired": groups, "looked_at": found.looked_at})
