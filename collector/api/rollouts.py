"""Rollouts: what is held of each, and counts and sums by cohort and arm."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from collector.api.problems import responses
from collector.api.state import Collector
from collector.contract import ArmSummary, RolloutOverview, to_document
from collector.store import rollouts

router = APIRouter(prefix="/api/v1/rollouts", tags=["rollouts"])


class Rollouts(BaseModel):
    """Every rollout that has a generation, by name."""

    rollouts: list[RolloutOverview]


class Summary(BaseModel):
    """One row for each cohort and arm."""

    summary: list[ArmSummary]


@router.get("", response_model=Rollouts, responses=responses(401, 403, 429, 503))
def list_rollouts(collector: Collector) -> JSONResponse:
    """List every rollout that has a generation."""
    with collector.store.read() as connection:
        found = rollouts.overviews(connection)
    return JSONResponse({"rollouts": [to_document(overview) for overview in found]})


@router.get(
    "/{rollout:path}/summary", response_model=Summary, responses=responses(401, 403, 404, 429, 503)
)
def get_summary(rollout: str, collector: Collector) -> JSONResponse:
    """Give counts and sums of each arm in each cohort; ratios are the reader's to make."""
    with collector.store.read() as connection:
        found = rollouts.summary(connection, rollout)
    return JSONResponse({"summary": [to_document(row) for row in found]})
