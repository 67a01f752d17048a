"""The collector's settings that clients need to know."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from collector.api.problems import responses
from collector.api.routing import DescribedRoute
from collector.api.state import Collector

router = APIRouter(prefix="/api/v1/collector", tags=["health"], route_class=DescribedRoute)


class About(BaseModel):
    """The collector's settings that clients need to know."""

    captures_content: bool = Field(description="Whether prompts and answers are kept.")
    requires_keys: bool


@router.get("", response_model=About, responses=responses(401, 403, 429, 503))
def about(collector: Collector) -> JSONResponse:
    """Return whether the collector keeps content and requires keys."""
    return JSONResponse(
        {
            "captures_content": collector.content.captures,
            "requires_keys": collector.authority.required,
        }
    )
