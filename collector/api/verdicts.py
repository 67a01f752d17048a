"""Verdicts on rollouts."""

import time
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from collector.api import bodies
from collector.api.access import grant_in
from collector.api.documents import Documents
from collector.api.problems import READS, responses
from collector.api.routing import DescribedRoute
from collector.api.state import Collector
from collector.contract import StoredVerdict, Verdict
from collector.store import Batch
from collector.store.release import verdict_evidence, verdicts

router = APIRouter(prefix="/api/v1/verdicts", tags=["verdicts"], route_class=DescribedRoute)

_BODY = bodies.described(bodies.schema_of("Verdict"))


class Verdicts(BaseModel):
    """Verdicts, newest first."""

    verdicts: list[StoredVerdict]


@router.post(
    "",
    response_model=StoredVerdict,
    responses=responses(400, 401, 403, 404, 409, 413, 429, 503),
    openapi_extra=_BODY,
)
async def post_verdict(request: Request, collector: Collector) -> Documents:
    """Store a verdict and return it with its id; idempotent.

    Needs the scope judge. 409 unless the pairs of its evidence are stored, with the same number and
    hash.
    """
    verdict = await bodies.record(request, Verdict, collector.settings.max_body_bytes)
    bodies.require_names(("rollout", verdict.rollout), ("policy_name", verdict.policy_name))
    await run_in_threadpool(verdict_evidence.require_stored, collector.store, verdict)
    grant = grant_in(request.scope)
    posted = StoredVerdict(
        id=verdicts.verdict_id(verdict),
        posted_unix_ns=time.time_ns(),
        verdict=verdict,
        who=grant.who,
        key_id=grant.key_id,
    )
    await collector.ingest.write(Batch(verdicts=(posted,)))
    return Documents(await collector.read(lambda found: verdicts.by_id(found, posted.id)))


@router.get("", response_model=Verdicts, responses=READS)
def list_verdicts(
    collector: Collector,
    rollout: Annotated[str | None, Query(description="Absent: verdicts on any rollout.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Most verdicts.")] = 20,
) -> Documents:
    """List the newest verdicts, each with the key that posted it."""
    with collector.store.read() as connection:
        found = verdicts.newest(connection, rollout, limit=limit)
    return Documents({"verdicts": found})
