"""Whole traces."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from collector.api.problems import responses
from collector.api.state import Collector
from collector.contract import SpanStatus
from collector.span_json import span_to_document
from collector.store import traces

router = APIRouter(prefix="/api/v1/traces", tags=["traces"])

_VALUES = (
    "Attribute values. What JSON lacks is an object with one key: `bytes_hex`, `double` "
    "(NaN, Infinity, -Infinity) or `kvlist`."
)


class EventBody(BaseModel):
    """Something that happened during a span."""

    name: str
    time_unix_ns: int
    attributes: dict[str, Any] = Field(description=_VALUES)


class LinkBody(BaseModel):
    """A reference to another span."""

    trace_id: str
    span_id: str
    attributes: dict[str, Any] = Field(description=_VALUES)


class SpanBody(BaseModel):
    """One span, decoded but not interpreted."""

    trace_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    kind: str
    start_unix_ns: int
    end_unix_ns: int
    status: SpanStatus
    status_message: str | None
    scope_name: str | None
    attributes: dict[str, Any] = Field(description=_VALUES)
    resource: dict[str, Any] = Field(description=_VALUES)
    events: list[EventBody]
    links: list[LinkBody]


class Trace(BaseModel):
    """A trace's spans by start."""

    spans: list[SpanBody]


TraceId = Annotated[str, Path(pattern="^[0-9a-fA-F]{32}$", description="32 hexadecimal digits.")]


@router.get("/{trace_id}", response_model=Trace, responses=responses(404, 422, 503))
def get_trace(trace_id: TraceId, collector: Collector) -> JSONResponse:
    """Give every stored span of a trace."""
    with collector.store.read() as connection:
        spans = traces.trace(connection, trace_id)
    return JSONResponse({"spans": [span_to_document(span) for span in spans]})
