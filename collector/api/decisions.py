"""Release decisions, requested by rollout controllers before they move traffic."""

import time
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query

from collector.api.documents import Documents
from collector.api.pages import RolloutPath
from collector.api.problems import READS
from collector.api.routing import DescribedRoute
from collector.api.state import Collector
from collector.contract import Outcome, ReleaseDecision
from collector.store.release import decisions

router = APIRouter(prefix="/api/v1/rollouts", tags=["decisions"], route_class=DescribedRoute)

HOUR_S = 3600.0
MaxAge = Annotated[
    float, Query(gt=0, le=366 * 86400, description="Seconds after which a pass is stale.")
]


class HookAction(StrEnum):
    """The action of a webhook that reads only the response's status."""

    PROMOTION = "promotion"
    ROLLBACK = "rollback"


_ALLOWS = {HookAction.PROMOTION: Outcome.PASS, HookAction.ROLLBACK: Outcome.FAIL}


@router.get("/{rollout:path}/decision", response_model=ReleaseDecision, responses=READS)
def get_decision(
    rollout: RolloutPath, collector: Collector, max_age_s: MaxAge = HOUR_S
) -> Documents:
    """Return whether a rollout may proceed: pass, fail or inconclusive, with the verdict's age.

    A pass counts if it is the newest verdict under the policy registered before the first pair, and
    at most `max_age_s` old. Inconclusive means: hold.
    """
    return Documents(_decision(collector, rollout, max_age_s))


@router.post(
    "/{rollout:path}/decision",
    response_model=ReleaseDecision,
    responses={409: {"model": ReleaseDecision}, **READS},
)
def ask_decision(
    rollout: RolloutPath,
    collector: Collector,
    may: Annotated[HookAction, Query(description="200 if this may be done now, else 409.")],
    max_age_s: MaxAge = HOUR_S,
) -> Documents:
    """Answer a webhook by status: 200 if it may promote, or must roll back, else 409.

    The request's body is ignored. Needs the scope read.
    """
    found = _decision(collector, rollout, max_age_s)
    status = 200 if found.decision is _ALLOWS[may] else 409
    return Documents(found, status)


def _decision(collector: Collector, rollout: str, max_age_s: float) -> ReleaseDecision:
    with collector.store.read() as connection:
        return decisions.decide(
            connection, rollout, now_unix_ns=time.time_ns(), max_age_s=max_age_s
        )
