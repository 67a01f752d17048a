"""Samples of engines' gauges and counters, page by page."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from collector.api import cursors
from collector.api.documents import Documents
from collector.api.pages import After, Limit
from collector.api.problems import responses
from collector.api.routing import DescribedRoute
from collector.api.state import Collector
from collector.contract import EngineSample
from collector.store import samples

router = APIRouter(prefix="/api/v1/samples", tags=["samples"], route_class=DescribedRoute)

_LAST_UNIX_NS = 2**63 - 1
Since = Annotated[int, Query(ge=0, le=_LAST_UNIX_NS, description="Unix nanoseconds, inclusive.")]
Until = Annotated[
    int | None,
    Query(ge=0, le=_LAST_UNIX_NS, description="Unix nanoseconds, exclusive. Absent: no end."),
]


class Samples(BaseModel):
    """A page of samples, ordered by time."""

    samples: list[EngineSample]
    next: str | None


@router.get("", response_model=Samples, responses=responses(400, 401, 403, 422, 429, 503))
def list_samples(
    collector: Collector,
    metric: Annotated[
        str, Query(description="Name of the metric, such as vllm:num_requests_running.")
    ],
    service_name: Annotated[str | None, Query(description="Only samples of this service.")] = None,
    since_unix_ns: Since = 0,
    until_unix_ns: Until = None,
    limit: Limit = 1000,
    after: After = None,
) -> Documents:
    """List a metric's samples from `since_unix_ns` (inclusive) to `until_unix_ns` (exclusive)."""
    wanted = samples.SampleFilter(metric, service_name, since_unix_ns, until_unix_ns)
    position = cursors.decode(after, samples.SamplePosition)
    with collector.store.read() as connection:
        page = samples.page(connection, wanted, limit=limit, after=position)
    return Documents({"samples": page.records, "next": cursors.encode(page.next)})
