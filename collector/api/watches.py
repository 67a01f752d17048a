"""Watches of rollouts: the state of `draftgate watch`."""

import time

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from collector.access.authority import Grant
from collector.api import bodies
from collector.api.access import grant_in, require
from collector.api.documents import Documents
from collector.api.pages import RolloutPath
from collector.api.problems import responses
from collector.api.routing import DescribedRoute
from collector.api.state import Collector, State
from collector.api_key import Scope
from collector.contract import (
    StoredWatch,
    SwitchState,
    WatchUpdate,
)
from collector.errors import RequestError
from collector.store.release import switches, watches

router = APIRouter(prefix="/api/v1/rollouts", tags=["watches"], route_class=DescribedRoute)


class Watches(BaseModel):
    """A rollout's watches, one per policy, the last updated first."""

    watches: list[StoredWatch]


@router.get(
    "/{rollout:path}/watches", response_model=Watches, responses=responses(401, 403, 404, 429, 503)
)
def list_watches(rollout: RolloutPath, collector: Collector) -> Documents:
    """Return the state of each watch of a rollout."""
    with collector.store.read() as connection:
        found = watches.of_rollout(connection, rollout)
    return Documents({"watches": found})


@router.post(
    "/{rollout:path}/watches",
    response_model=StoredWatch,
    responses=responses(400, 401, 403, 404, 409, 413, 429, 503),
    openapi_extra=bodies.described({"type": "object"}),
)
async def post_watch(rollout: RolloutPath, request: Request, collector: Collector) -> Documents:
    """Replace a watch's state by the next one and, atomically, set the switch if given.

    Needs the scope judge, and admin if it sets the switch. 409 if the state that this continues is
    no longer the newest, so that only one of several watchers acts.
    """
    given = await bodies.record(request, WatchUpdate, collector.settings.max_body_bytes)
    if given.switch is not None:
        require(request, Scope.ADMIN)
    if given.watch.rollout != rollout:
        raise RequestError(f"watch.rollout: wanted {rollout!r}, got {given.watch.rollout!r}")
    reason = "" if given.switch is None else given.switch.reason
    bodies.require_names(
        ("the rollout", rollout), ("reason", reason), ("policy_hash", given.watch.policy_hash)
    )
    stored, event = await run_in_threadpool(_replace, collector, given, grant_in(request.scope))
    if event is not None:
        await collector.switches.note(rollout, event.id)
    return Documents(stored)


def _replace(
    collector: State, given: WatchUpdate, grant: Grant
) -> tuple[StoredWatch, SwitchState | None]:
    now_unix_ns, watch = time.time_ns(), given.watch
    with collector.store.transaction() as connection:
        stored = watches.replace(connection, given, now_unix_ns, key_id=grant.key_id)
        if given.switch is None:
            return stored, None
        event = switches.add(
            connection, watch.rollout, given.switch, who=grant.who, unix_ns=now_unix_ns
        )
    return stored, event
