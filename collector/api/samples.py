"""Samples of engines' gauges and counters, page by page."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from collector.api import cursors
from collector.api.pages import After, Limit
from collector.api.problems import responses
from collector.api.state import Collector
from collector.contract import EngineSample, to_document
from collector.errors import RequestError
from collector.store import samples

router = APIRouter(prefix="/api/v1/samples", tags=["samples"])

_LAST_UNIX_NS = 2**63 - 1
UnixNs = Annotated[int, Query(ge=0, le=_LAST_UNIX_NS, description="Unix nanoseconds.")]


class Samples(BaseModel):
    """A page of samples, ordered by time."""

    samples: list[EngineSample]
    next: str | None


@router.get("", response_model=Samples, responses=responses(400, 422, 503))
def list_samples(
    collector: Collector,
    metric: Annotated[
        str, Query(description="Name of the metric, such as vllm:num_requests_running.")
    ],
    service_name: str | None = None,
    since_unix_ns: UnixNs = 0,
    until_unix_ns: UnixNs | None = None,
    limit: Limit = 1000,
    after: After = None,
) -> JSONResponse:
    """List a metric's samples from `since_unix_ns` (inclusive) to `until_unix_ns` (exclusive)."""
    wanted = samples.Filter(metric, service_name, since_unix_ns, until_unix_ns)
    position = _position(after) if after is not None else None
    with collector.store.read() as connection:
        page = samples.page(connection, wanted, limit=limit, after=position)
    return JSONResponse(
        {
            "samples": [to_document(sample) for sample in page.samples],
            "next": cursors.encode(
                None if page.next is None else [page.next.time_unix_ns, page.next.series.hex()]
            ),
        }
    )


def _position(after: str) -> samples.SamplePosition:
    time_unix_ns, series = cursors.decode(after, [int, str])
    try:
        return samples.SamplePosition(int(time_unix_ns), bytes.fromhex(str(series)))
    except ValueError as exc:
        raise RequestError(f"after={after[:60]!r}: is no cursor of samples") from exc
