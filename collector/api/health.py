"""Liveness and readiness probes."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from collector.api.problems import responses
from collector.api.routing import DescribedRoute
from collector.api.state import Collector

router = APIRouter(tags=["health"], route_class=DescribedRoute)


class Health(BaseModel):
    """The status of a healthy collector."""

    status: str


@router.get("/healthz", response_model=Health)
async def healthz() -> JSONResponse:
    """Return ok if the process answers."""
    # Runs in the event loop because all worker threads may wait for the database.
    return JSONResponse({"status": "ok"})


@router.get("/readyz", response_model=Health, responses=responses(503))
def readyz(collector: Collector) -> JSONResponse:
    """Return ok if the database can be read."""
    collector.store.check()
    return JSONResponse({"status": "ok"})
