"""Ramps of rollouts: what part of the traffic the candidate gets, and who said so."""

import time

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from collector.api import bodies
from collector.api.access import grant_in
from collector.api.problems import responses
from collector.api.state import Collector, State
from collector.contract import RampChange, RampStep, to_document
from collector.store import ramps

router = APIRouter(prefix="/api/v1/rollouts", tags=["ramps"])

_BODY = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["percent", "reason"],
                "additionalProperties": False,
                "properties": {
                    "percent": {"type": "number", "minimum": 0, "maximum": 100},
                    "reason": {"type": "string", "minLength": 1, "maxLength": 2000},
                    "continues": {"type": "integer", "minimum": 0},
                    "verdict": {"type": ["string", "null"], "maxLength": 2000},
                },
            }
        }
    },
}
_LOCAL = "local"
_LOG = 100


class RampLog(BaseModel):
    """A rollout's ramp, and who took which step when, newest first."""

    rollout: str
    step: RampStep | None
    """None where nobody has begun it."""
    log: list[RampStep]


@router.get(
    "/{rollout:path}/ramp",
    response_model=RampLog,
    responses=responses(401, 403, 404, 422, 429, 503),
)
def get_ramp(rollout: str, collector: Collector) -> JSONResponse:
    """Give the newest 100 steps of a rollout's ramp."""
    with collector.store.read() as connection:
        log = ramps.newest(connection, rollout, limit=_LOG)
    return JSONResponse(
        {
            "rollout": rollout,
            "step": to_document(log[0]) if log else None,
            "log": [to_document(step) for step in log],
        }
    )


@router.post(
    "/{rollout:path}/ramp",
    response_model=RampStep,
    responses=responses(400, 401, 403, 404, 409, 413, 429, 503),
    openapi_extra={"requestBody": _BODY},
)
async def post_ramp(rollout: str, request: Request, collector: Collector) -> JSONResponse:
    """Take a step of a rollout's ramp; needs the scope admin.

    409 where somebody else took a step first, and where a larger share does not name the newest
    verdict under the policy that was registered before the first pair: a pass, posted after the
    step before, on pairs that all arrived after it. The first step needs none.
    """
    change = await bodies.record(request, RampChange, collector.settings.max_body_bytes)
    bodies.require_names(
        ("the rollout", rollout), ("reason", change.reason), ("verdict", change.verdict or "")
    )
    who = grant_in(request.scope).key_name or _LOCAL
    stored = await run_in_threadpool(_add, collector, rollout, change, who)
    return JSONResponse(to_document(stored))


def _add(collector: State, rollout: str, change: RampChange, who: str) -> RampStep:
    with collector.store.transaction() as connection:
        return ramps.add(connection, rollout, change, who=who, unix_ns=time.time_ns())
