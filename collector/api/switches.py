"""Switches of rollouts: whether the candidate may answer, as an audit log."""

import time
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from collector.api import bodies
from collector.api.access import grant_in
from collector.api.problems import responses
from collector.api.state import Collector, State
from collector.contract import SwitchChange, SwitchState, to_document
from collector.store import switches

router = APIRouter(prefix="/api/v1/rollouts", tags=["switches"])

_BODY = bodies.object_of(
    "state",
    "reason",
    state={"enum": ["on", "off"]},
    reason={"type": "string", "minLength": 1, "maxLength": 2000},
)
_LOG = 100
_LAST_ID = 2**63 - 1


class SwitchLog(BaseModel):
    """A rollout's switch: its state, and the log of events, newest first."""

    rollout: str
    state: SwitchState | None
    """None if it was never set."""
    log: list[SwitchState]


@router.get(
    "/{rollout:path}/switch",
    response_model=SwitchLog,
    responses=responses(401, 403, 404, 422, 429, 503),
)
async def get_switch(
    rollout: str,
    collector: Collector,
    wait_s: Annotated[
        float, Query(ge=0, le=60, description="Wait up to this long for an event after `since`.")
    ] = 0,
    since: Annotated[
        int, Query(ge=0, le=_LAST_ID, description="Id of the newest event known to the client.")
    ] = 0,
) -> JSONResponse:
    """Return the state and the newest 100 events of a rollout's switch.

    With `wait_s`, respond as soon as there is an event after `since`, or after that time.
    """
    log = await _newest(collector, rollout)
    if wait_s and (not log or log[0].id <= since):
        await collector.switches.wait_for(rollout, since, wait_s)
        log = await _newest(collector, rollout)
    return JSONResponse(
        {
            "rollout": rollout,
            "state": to_document(log[0]) if log else None,
            "log": [to_document(event) for event in log],
        }
    )


@router.post(
    "/{rollout:path}/switch",
    response_model=SwitchState,
    responses=responses(400, 401, 403, 404, 413, 429, 503),
    openapi_extra=_BODY,
)
async def post_switch(rollout: str, request: Request, collector: Collector) -> JSONResponse:
    """Set a rollout's switch; needs the scope admin. Each post adds an event."""
    change = await bodies.record(request, SwitchChange, collector.settings.max_body_bytes)
    bodies.require_names(("the rollout", rollout), ("reason", change.reason))
    who = grant_in(request.scope).who
    stored = await run_in_threadpool(_add, collector, rollout, change, who)
    await collector.switches.note(rollout, stored.id)
    return JSONResponse(to_document(stored))


async def _newest(collector: State, rollout: str) -> tuple[SwitchState, ...]:
    return await run_in_threadpool(_read, collector, rollout)


def _read(collector: State, rollout: str) -> tuple[SwitchState, ...]:
    with collector.store.read() as connection:
        return switches.newest(connection, rollout, limit=_LOG)


def _add(collector: State, rollout: str, change: SwitchChange, who: str) -> SwitchState:
    with collector.store.transaction() as connection:
        return switches.add(
            connection,
            rollout,
            change.state,
            reason=change.reason,
            who=who,
            unix_ns=time.time_ns(),
        )
