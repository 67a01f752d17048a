"""Whether the collector runs, and whether it can serve."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from collector.api.problems import responses
from collector.api.state import Collector

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """All is well."""

    status: str


@router.get("/healthz", response_model=Health)
async def healthz() -> JSONResponse:
    """Say that the process answers."""
    # In the event loop: the threads may all wait for the database.
    return JSONResponse({"status": "ok"})


@router.get("/readyz", response_model=Health, responses=responses(503))
def readyz(collector: Collector) -> JSONResponse:
    """Say that the database can be read."""
    collector.store.check()
    return JSONResponse({"status": "ok"})
