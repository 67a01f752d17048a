"""Pairs whose candidate scored lower, the largest loss first."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from collector.api import cursors
from collector.api.documents import Documents
from collector.api.pages import After, Cohort, Limit, Rollout
from collector.api.problems import LISTS
from collector.api.routing import DescribedRoute
from collector.api.state import Collector
from collector.contract import Regression
from collector.store.upkeep import regressions

router = APIRouter(prefix="/api/v1/regressions", tags=["pairs"], route_class=DescribedRoute)

Metric = Annotated[
    str | None,
    Query(min_length=1, description="Absent: each pair's metric with the largest loss."),
]


class Regressions(BaseModel):
    """A page of regressions, the largest loss first."""

    regressions: list[Regression]
    next: str | None
    metrics: list[str] = Field(description="All metrics in which a pair of the rollout regressed.")
    counted: int = Field(description="Number of matches, at most `counted_at_most`.")
    counted_at_most: int
    waiting_scores: int = Field(
        description="Score posts of any rollout that are not processed yet."
    )


@router.get("", response_model=Regressions, responses=LISTS)
def list_regressions(
    collector: Collector,
    rollout: Rollout,
    cohort: Cohort = None,
    metric: Metric = None,
    limit: Limit = 100,
    after: After = None,
) -> Documents:
    """List a rollout's pairs whose candidate scored lower than the baseline, the worst first.

    Each pair appears once. `counted` stops at `counted_at_most`. `waiting_scores` are posts that
    are not processed yet, which takes seconds.
    """
    wanted = regressions.RegressionFilter(rollout, cohort, metric)
    position = cursors.decode(after, regressions.RegressionPosition)
    with collector.store.read() as connection:
        page = regressions.page(connection, wanted, limit=limit, after=position)
    return Documents(
        {
            **page._asdict(),
            "next": cursors.encode(page.next),
            "counted_at_most": regressions.COUNTED_AT_MOST,
        }
    )
