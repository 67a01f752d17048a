"""Rollouts: overviews, and counts and sums by cohort and arm."""

from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from collector.api import instants
from collector.api.documents import Documents
from collector.api.pages import Cohort, RolloutPath
from collector.api.problems import LISTS, responses
from collector.api.routing import DescribedRoute
from collector.api.state import Collector
from collector.contract import ArmSummary, Document, RolloutOverview, TimeBucket
from collector.errors import RequestError
from collector.store import rollouts, rollup_reads
from collector.store.rollups import state

router = APIRouter(prefix="/api/v1/rollouts", tags=["rollouts"], route_class=DescribedRoute)


class Rollouts(BaseModel):
    """Every rollout that has a generation, ordered by name."""

    rollouts: list[RolloutOverview]


class StepName(StrEnum):
    """The length of a time bucket."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


class PercentilesDefinition(BaseModel):
    """The definition of p50, p95 and p99."""

    method: str = "DDSketch"
    relative_error: float = state.RELATIVE_ERROR
    definition: str = "lower sample quantile: the value of rank floor(q (n - 1)) from 0"


class WindowBody(BaseModel):
    """The window of the sums, by start of generations; null means no bound."""

    start_unix_s: int | None
    end_unix_s: int | None = Field(description="Exclusive.")


class Summary(BaseModel):
    """One row per cohort and arm."""

    summary: list[ArmSummary]
    window: WindowBody
    percentiles: PercentilesDefinition


class Timeseries(BaseModel):
    """One row per step with generations, cohort and arm."""

    timeseries: list[TimeBucket]
    window: WindowBody
    percentiles: PercentilesDefinition


@router.get("", response_model=Rollouts, responses=responses(401, 403, 429, 503))
def list_rollouts(collector: Collector) -> Documents:
    """List every rollout that has a generation, with its counts."""
    with collector.store.read() as connection:
        found = rollouts.overviews(connection)
    return Documents({"rollouts": found})


@router.get("/{rollout:path}/summary", response_model=Summary, responses=LISTS)
def get_summary(
    rollout: RolloutPath,
    collector: Collector,
    start: instants.Start = None,
    end: instants.End = None,
) -> Documents:
    """Return counts, sums and percentiles of each arm in each cohort; compute ratios from them.

    Covers the generations that started in the window, or all. The window is widened to whole
    minutes (whole hours where retention has deleted the minutes), as returned in `window`.
    """
    window = _window(start, end, rollup_reads.BucketLength.MINUTE)
    with collector.store.read() as connection:
        window = rollup_reads.kept(connection, window)
        found = rollouts.summary(connection, rollout, window)
    return Documents({"summary": found, **_about(window)})


@router.get("/{rollout:path}/timeseries", response_model=Timeseries, responses=LISTS)
def get_timeseries(
    rollout: RolloutPath,
    collector: Collector,
    step: Annotated[StepName, Query(description="Length of a step; days are UTC.")],
    start: instants.Start = None,
    end: instants.End = None,
    cohort: Cohort = None,
    counts_only: Annotated[bool, Query(description="Omit the measured values.")] = False,  # noqa: FBT002  # a query parameter
) -> Documents:
    """Return the summary of each arm in each cohort per minute, hour or day.

    The window is widened to whole steps. A step without generations has no row. `counts_only`
    omits the measured values (`metrics`, and the sums of times), which are most of the work.
    """
    length = rollup_reads.BucketLength[step.name]
    window = _window(start, end, length)
    with collector.store.read() as connection:
        window = rollup_reads.kept(connection, window, length)
        found = rollouts.timeseries(
            connection, rollout, window, length, cohort=cohort, measured=not counts_only
        )
    return Documents({"timeseries": found, **_about(window)})


def _window(
    start: str | None, end: str | None, step: rollup_reads.BucketLength
) -> rollup_reads.TimeWindow:
    start_unix_s, end_unix_s = instants.unix_s("start", start), instants.unix_s("end", end)
    if start_unix_s is not None and end_unix_s is not None and start_unix_s >= end_unix_s:
        raise RequestError(f"start={start!r}: is not before end={end!r}; swap them")
    return rollup_reads.window(start_unix_s, end_unix_s, step)


def _about(window: rollup_reads.TimeWindow) -> Document:
    return {
        "window": window._asdict(),
        "percentiles": PercentilesDefinition().model_dump(),
    }
