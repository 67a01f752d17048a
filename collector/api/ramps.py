"""Ramps of rollouts: the candidate's share of traffic, as an audit log."""

import time

from fastapi import APIRouter, Request
from pydantic import BaseModel

from collector.api import bodies
from collector.api.access import grant_in
from collector.api.documents import Documents
from collector.api.pages import RolloutPath
from collector.api.problems import READS, responses
from collector.api.routing import DescribedRoute
from collector.api.state import Collector
from collector.contract import RampChange, RampStep
from collector.store.release import ramps

router = APIRouter(prefix="/api/v1/rollouts", tags=["ramps"], route_class=DescribedRoute)

_BODY = bodies.object_of(
    "percent",
    "reason",
    percent={"type": "number", "minimum": 0, "maximum": 100},
    reason={"type": "string", "minLength": 1, "maxLength": 2000},
    continues={"type": "integer", "minimum": 0},
    verdict={"type": ["string", "null"], "maxLength": 2000},
)
_LOG = 100


class RampLog(BaseModel):
    """A rollout's ramp: its current step, and the log of steps, newest first."""

    rollout: str
    step: RampStep | None
    """None before the first step."""
    log: list[RampStep]


@router.get("/{rollout:path}/ramp", response_model=RampLog, responses=READS)
def get_ramp(rollout: RolloutPath, collector: Collector) -> Documents:
    """Return the newest 100 steps of a rollout's ramp."""
    with collector.store.read() as connection:
        log = ramps.newest(connection, rollout, limit=_LOG)
    return Documents({"rollout": rollout, "step": log[0] if log else None, "log": log})


@router.post(
    "/{rollout:path}/ramp",
    response_model=RampStep,
    responses=responses(400, 401, 403, 404, 409, 413, 429, 503),
    openapi_extra=_BODY,
)
async def post_ramp(rollout: RolloutPath, request: Request, collector: Collector) -> Documents:
    """Take a step of a rollout's ramp; needs the scope admin.

    409 if another step was stored first. A larger share must name the newest verdict under the
    policy registered before the first pair: a pass, posted after the last step, on pairs that all
    arrived after it; otherwise 409. The first step needs no verdict.
    """
    change = await bodies.record(request, RampChange, collector.settings.max_body_bytes)
    bodies.require_names(
        ("the rollout", rollout), ("reason", change.reason), ("verdict", change.verdict or "")
    )
    who = grant_in(request.scope).who
    stored = await collector.transact(
        lambda connection: ramps.add(connection, rollout, change, who=who, unix_ns=time.time_ns())
    )
    return Documents(stored)
