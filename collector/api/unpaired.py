"""Generations that do not pair, and why."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from collector.api.documents import Documents
from collector.api.problems import LISTS
from collector.api.routing import DescribedRoute
from collector.api.state import Collector
from collector.contract import Unpaired
from collector.store import rollouts
from collector.store.evidence import unpaired

router = APIRouter(prefix="/api/v1/unpaired", tags=["pairs"], route_class=DescribedRoute)


class UnpairedGroups(BaseModel):
    """Unpaired generations, grouped by reason and sender."""

    unpaired: list[Unpaired]
    looked_at: int = Field(description="Number of newest generations that were checked.")


@router.get("", response_model=UnpairedGroups, responses=LISTS)
def list_unpaired(
    collector: Collector,
    rollout: Annotated[str | None, Query(description="Absent: all generations.")] = None,
) -> Documents:
    """List what does not pair among the newest 20,000 generations, by sender and reason.

    The largest group comes first.
    """
    with collector.store.read() as connection:
        if rollout is not None:
            rollouts.require(connection, rollout)
        found = unpaired.find(connection, rollout)
    return Documents({"unpaired": found.groups, "looked_at": found.looked_at})
