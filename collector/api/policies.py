"""Policies registered for rollouts, and rollouts' histories."""

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
from collector.api.state import Collector
from collector.contract import (
    DatedVerdict,
    PolicyRegistration,
    RegisteredPolicy,
    RolloutHistory,
)
from collector.store.release import histories, policies

router = APIRouter(prefix="/api/v1/rollouts", tags=["policies"], route_class=DescribedRoute)

_BODY = bodies.object_of(
    "policy_name",
    "policy_hash",
    "text",
    policy_name={"type": "string", "minLength": 1, "maxLength": 2000},
    policy_hash={"type": "string", "pattern": "^[0-9a-f]{64}$"},
    text={"type": "string", "description": "The policy as canonical JSON."},
)


class DatedVerdicts(BaseModel):
    """Verdicts with the serving that they judged, newest first."""

    verdicts: list[DatedVerdict]


@router.get("/{rollout:path}/history", response_model=RolloutHistory, responses=READS)
def get_history(rollout: RolloutPath, collector: Collector) -> Documents:
    """Return a rollout's registered policies, verdicts, and the candidate's earlier rollouts.

    Empty if nothing is stored for the rollout.
    """
    with collector.store.read() as connection:
        found = histories.of_rollout(connection, rollout)
    return Documents(found)


@router.get("/{rollout:path}/verdicts", response_model=DatedVerdicts, responses=READS)
def list_dated_verdicts(
    rollout: RolloutPath,
    collector: Collector,
    *,
    same_candidate: Annotated[
        bool, Query(description="Whether to add those on earlier rollouts of the same candidate.")
    ] = False,
    limit: Annotated[int, Query(ge=1, le=1000, description="Most verdicts.")] = 100,
) -> Documents:
    """List a rollout's newest verdicts, each with the serving that it judged."""
    with collector.store.read() as connection:
        found = histories.dated_verdicts(
            connection, rollout, same_candidate=same_candidate, limit=limit
        )
    return Documents({"verdicts": found})


@router.post(
    "/{rollout:path}/policies",
    response_model=RegisteredPolicy,
    responses=responses(400, 401, 403, 404, 413, 429, 503),
    openapi_extra=_BODY,
)
async def post_policy(rollout: RolloutPath, request: Request, collector: Collector) -> Documents:
    """Register the policy to judge a rollout by; needs the scope judge.

    Registrations are never deleted. The newest one made before both arms had generations is in
    force; `before_first_pair` tells whether this one was.
    """
    given = await bodies.record(request, PolicyRegistration, collector.settings.max_body_bytes)
    bodies.require_names(("the rollout", rollout), ("policy_name", given.policy_name))
    bodies.require_text(given.text)
    grant = grant_in(request.scope)
    stored = await collector.transact(
        lambda connection: policies.add(
            connection,
            rollout,
            given,
            who=grant.who,
            key_id=grant.key_id,
            unix_ns=time.time_ns(),
        )
    )
    return Documents(stored)
