"""Switches of rollouts: whether the candidate may answer, as an audit log."""

import time
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from collector.api import bodies
from collector.api.access import grant_in
from collector.api.documents import Documents
from collector.api.pages import RolloutPath
from collector.api.problems import READS, responses
from collector.api.routing import DescribedRoute
from collector.api.state import Collector, State
from collector.contract import SwitchChange, SwitchState
from collector.store.release import switches

router = APIRouter(prefix="/api/v1/rollouts", tags=["switches"], route_class=DescribedRoute)

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


@router.get("/{rollout:path}/switch", response_model=SwitchLog, responses=READS)
async def get_switch(
    rollout: RolloutPath,
    collector: Collector,
    wait_s: Annotated[
        float, Query(ge=0, le=60, description="Wait up to this long for an event after `since`.")
    ] = 0,
    since: Annotated[
        int, Query(ge=0, le=_LAST_ID, description="Id of the newest event known to the client.")
    ] = 0,
) -> Documents:
    """Return the state and the newest 100 events of a rollout's switch.

    With `wait_s`, respond as soon as there is an event after `since`, or after that time.
    """
    log = await _newest(collector, rollout)
    if wait_s and (not log or log[0].id <= since):
        await collector.switches.wait_for(rollout, since, wait_s)
        log = await _newest(collector, rollout)
    return Documents({"rollout": rollout, "state": log[0] if log else None, "log": log})


@router.post(
    "/{rollout:path}/switch",
    response_model=SwitchState,
    responses=responses(400, 401, 403, 404, 413, 429, 503),
    openapi_extra=_BODY,
)
async def post_switch(rollout: RolloutPath, request: Request, collector: Collector) -> Documents:
    """Set a rollout's switch, on or off; needs the scope admin.

    Each post adds an event to a log that nothing deletes, with the time and the key's name (`local`
    if no keys are required).
    """
    change = await bodies.record(request, SwitchChange, collector.settings.max_body_bytes)
    bodies.require_names(("the rollout", rollout), ("reason", change.reason))
    who = grant_in(request.scope).who
    stored = await collector.transact(
        lambda connection: switches.add(
            connection, rollout, change, who=who, unix_ns=time.time_ns()
        )
    )
    await collector.switches.note(rollout, stored.id)
    return Documents(stored)


async def _newest(collector: State, rollout: str) -> tuple[SwitchState, ...]:
    return await collector.read(lambda found: switches.newest(found, rollout, limit=_LOG))
