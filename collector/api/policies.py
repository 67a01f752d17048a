"""Policies registered for rollouts, and rollouts' histories."""

import time

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from collector.access.authority import Grant
from collector.api import bodies
from collector.api.access import grant_in
from collector.api.problems import responses
from collector.api.state import Collector, State
from collector.contract import (
    PolicyRegistration,
    RegisteredPolicy,
    RolloutHistory,
    to_document,
)
from collector.store import histories, policies

router = APIRouter(prefix="/api/v1/rollouts", tags=["policies"])

_BODY = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["policy_name", "policy_hash", "text"],
                "additionalProperties": False,
                "properties": {
                    "policy_name": {"type": "string", "minLength": 1, "maxLength": 2000},
                    "policy_hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                    "text": {"type": "string", "description": "The policy as canonical JSON."},
                },
            }
        }
    },
}


@router.get(
    "/{rollout:path}/history",
    response_model=RolloutHistory,
    responses=responses(401, 403, 404, 422, 429, 503),
)
def get_history(rollout: str, collector: Collector) -> JSONResponse:
    """Return a rollout's registered policies, verdicts, and the candidate's earlier rollouts.

    Empty if nothing is stored for the rollout.
    """
    with collector.store.read() as connection:
        found = histories.of_rollout(connection, rollout)
    return JSONResponse(to_document(found))


@router.post(
    "/{rollout:path}/policies",
    response_model=RegisteredPolicy,
    responses=responses(400, 401, 403, 404, 413, 429, 503),
    openapi_extra={"requestBody": _BODY},
)
async def post_policy(rollout: str, request: Request, collector: Collector) -> JSONResponse:
    """Register the policy to judge a rollout by; needs the scope judge.

    Registrations are never deleted. The newest one made before both arms had generations is in
    force; `before_first_pair` tells whether this one was.
    """
    given = await bodies.record(request, PolicyRegistration, collector.settings.max_body_bytes)
    bodies.require_names(("the rollout", rollout), ("policy_name", given.policy_name))
    bodies.require_text("text", given.text)
    stored = await run_in_threadpool(_add, collector, rollout, given, grant_in(request.scope))
    return JSONResponse(to_document(stored))


def _add(
    collector: State, rollout: str, given: PolicyRegistration, grant: Grant
) -> RegisteredPolicy:
    with collector.store.transaction() as connection:
        return policies.add(
            connection,
            rollout,
            given,
            who=grant.who,
            key_id=grant.key_id,
            unix_ns=time.time_ns(),
        )
