"""Pairs whose candidate scored lower, the largest loss first."""

import math
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from collector.api import cursors
from collector.api.pages import After, Limit, Rollout
from collector.api.problems import responses
from collector.api.state import Collector
from collector.contract import Regression, to_document
from collector.errors import RequestError
from collector.store import regressions

router = APIRouter(prefix="/api/v1/regressions", tags=["pairs"])

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


@router.get("", response_model=Regressions, responses=responses(400, 401, 403, 404, 422, 429, 503))
def list_regressions(
    collector: Collector,
    rollout: Rollout,
    cohort: str | None = None,
    metric: Metric = None,
    limit: Limit = 100,
    after: After = None,
) -> JSONResponse:
    """List a rollout's pairs whose candidate scored lower than the baseline, the worst first.

    Each pair appears once. New scores are processed within seconds.
    """
    wanted = regressions.Filter(rollout, cohort, metric)
    position = _position(after) if after is not None else None
    with collector.store.read() as connection:
        page = regressions.page(connection, wanted, limit=limit, after=position)
    last = page.next
    return JSONResponse(
        {
            "regressions": [to_document(one) for one in page.regressions],
            "next": cursors.encode(
                None if last is None else [repr(last.change), last.prompt_id, last.repeat]
            ),
            "metrics": list(page.metrics),
            "counted": page.counted,
            "counted_at_most": regressions.COUNTED_AT_MOST,
            "waiting_scores": page.waiting_scores,
        }
    )


def _position(after: str) -> regressions.RegressionPosition:
    change, prompt_id, repeat = cursors.decode(after, [str, str, int])
    try:
        value = float(change)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "\0" in str(prompt_id):
        raise RequestError(f"after={after[:60]!r}: is no cursor of this listing")
    return regressions.RegressionPosition(value, str(prompt_id), int(repeat))
