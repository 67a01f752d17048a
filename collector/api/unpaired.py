"""Generations that do not pair, and why."""

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
    """Unpaired generations, grouped by reason and sender."""

    unpaired: list[Unpaired]
    looked_at: int = Field(description="Number of newest generations that were checked.")


@router.get(
    "", response_model=UnpairedGroups, responses=responses(400, 401, 403, 404, 422, 429, 503)
)
def list_unpaired(
    collector: Collector,
    rollout: Annotated[str | None, Query(description="Absent: all generations.")] = None,
) -> JSONResponse:
    """List the unpaired ones among the newest generations, the largest group first."""
    with collector.store.read() as connection:
        if rollout is not None:
            rollouts.require(connection, rollout)
        found = unpaired.find(connection, rollout)
    groups = [to_document(group) for group in found.groups]
    return JSONResponse({"unpaired": groups, "looked_at": found.looked_at})
