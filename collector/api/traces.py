"""Whole traces."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from collector.api.access import may_read_content
from collector.api.problems import READS
from collector.api.routing import DescribedRoute
from collector.api.state import Collector
from collector.contract import AttributeValue, Span, SpanStatus
from collector.contract.span_json import span_to_document
from collector.dialects import is_text
from collector.store import traces

router = APIRouter(prefix="/api/v1/traces", tags=["traces"], route_class=DescribedRoute)

_VALUES = (
    "Attribute values. Values that JSON lacks are objects with one key: `bytes_hex`, `double` "
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
    """A trace's spans, ordered by start."""

    spans: list[SpanBody]
    content_withheld: bool = Field(
        description="Whether text is omitted because the key lacks the scope content."
    )


TraceId = Annotated[str, Path(pattern="^[0-9a-fA-F]{32}$", description="32 hexadecimal digits.")]


@router.get("/{trace_id}", response_model=Trace, responses=READS)
def get_trace(trace_id: TraceId, collector: Collector, request: Request) -> JSONResponse:
    """Return every stored span of a trace; text needs the scope content."""
    with_text = may_read_content(request)
    with collector.store.read() as connection:
        spans = traces.trace(connection, trace_id)
    shown = spans if with_text else map(_without_text, spans)
    return JSONResponse(
        {
            "spans": [span_to_document(span) for span in shown],
            "content_withheld": not with_text,
        }
    )


def _without_text(span: Span) -> Span:
    return replace(
        span,
        status_message=None,
        attributes=_numbers(span.attributes),
        events=tuple(replace(e, attributes=_numbers(e.attributes)) for e in span.events),
        links=tuple(replace(link, attributes=_numbers(link.attributes)) for link in span.links),
    )


def _numbers(attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if not is_text(name)}
