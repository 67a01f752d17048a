"""Leases of generations to score, shared among any number of evaluator workers."""

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import BaseModel

from collector import dialects
from collector.api import bodies
from collector.api.access import require
from collector.api.documents import Documents
from collector.api.pages import Text
from collector.api.problems import responses
from collector.api.routing import DescribedRoute
from collector.api.scores import without_text
from collector.api.state import Collector, State
from collector.api_key import Scope
from collector.contract import Lease, LeaseRenewal, LeaseRequest
from collector.contract.names import WANTED_NAME, is_name
from collector.errors import RequestError
from collector.store.upkeep import leases

LeaseId = Annotated[str, Path(description="The lease's id.")]

router = APIRouter(prefix="/api/v1/leases", tags=["leases"], route_class=DescribedRoute)

_BODY = bodies.described(bodies.schema_of("LeaseRequest"))
_MOST_GENERATIONS = 1000
_MOST_EVALUATORS = 100
_LONGEST_S = 3600
_RENEWAL = bodies.object_of(
    "ttl_s",
    ttl_s={"type": "number", "minimum": 0, "maximum": _LONGEST_S},
)


class Leases(BaseModel):
    """A lease, or none if all generations are handed out."""

    lease: Lease | None
    request: LeaseRequest
    """The request, with defaults."""


@router.post(
    "",
    response_model=Leases,
    responses=responses(400, 401, 403, 404, 413, 422, 429, 503),
    openapi_extra=_BODY,
)
async def post_lease(request: Request, collector: Collector, *, content: Text) -> Documents:
    """Lease the oldest generations that no worker with these evaluators has leased or finished.

    They come with their pairs and scores; `lease` is null if nothing is left. Generations of an
    expired lease go to the next worker that asks. Needs the scopes judge and
    read.
    """
    require(request, Scope.READ)
    wanted = await bodies.record(request, LeaseRequest, collector.settings.max_body_bytes)
    _check(wanted)
    lease = await run_in_threadpool(_lease, collector, wanted, content=content)
    return Documents({"lease": lease, "request": wanted})


@router.post(
    "/{lease_id}/renewal",
    status_code=HTTPStatus.NO_CONTENT,
    response_class=Response,
    responses=responses(400, 401, 403, 404, 409, 413, 429, 503),
    openapi_extra=_RENEWAL,
)
async def post_renewal(lease_id: LeaseId, request: Request, collector: Collector) -> Response:
    """Extend or release a lease; 409 if it was finished, or expired and was taken over.

    It lasts `ttl_s` seconds from now; 0 releases it. Needs the scopes judge and read.
    """
    renewal = await bodies.record(request, LeaseRenewal, collector.settings.max_body_bytes)
    if not 0 <= renewal.ttl_s <= _LONGEST_S:
        raise RequestError(f"ttl_s: wanted 0 to {_LONGEST_S}, got {renewal.ttl_s}")
    await collector.transact(lambda held: leases.renew(held, lease_id, renewal.ttl_s))
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.delete(
    "/{lease_id}",
    status_code=HTTPStatus.NO_CONTENT,
    response_class=Response,
    responses=responses(401, 403, 404, 409, 429, 503),
)
def delete_lease(lease_id: LeaseId, collector: Collector) -> Response:
    """Finish a lease whose generations are all scored; 409 if it expired and was taken over."""
    with collector.store.transaction() as connection:
        leases.finish(connection, lease_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _lease(collector: State, wanted: LeaseRequest, *, content: bool) -> Lease | None:
    with collector.store.transaction() as connection:
        piece = leases.take(connection, wanted)
    if piece is None:
        return None
    # Not in the write transaction, for which other writers wait.
    with collector.store.read() as connection:
        content_of = dialects.content if content else None
        found = leases.read(connection, wanted, piece, content_of=content_of)
    return Lease(
        id=piece.id,
        rollout=wanted.rollout,
        expires_in_s=wanted.ttl_s,
        generations=found.generations,
        pairs=tuple(replace(pair, baseline_scores=(), candidate_scores=()) for pair in found.pairs),
        scores=without_text(found.scores),
    )


def _check(wanted: LeaseRequest) -> None:
    """Raise `RequestError` if a value is out of range."""
    for name, count, most in (
        ("generations", wanted.generations, _MOST_GENERATIONS),
        ("evaluators", len(wanted.evaluators), _MOST_EVALUATORS),
    ):
        if not 1 <= count <= most:
            raise RequestError(f"{name}: wanted 1 to {most}, got {count}")
    if not 0 < wanted.ttl_s <= _LONGEST_S:
        raise RequestError(
            f"ttl_s: wanted more than 0 and at most {_LONGEST_S}, got {wanted.ttl_s}"
        )
    bodies.require_names(("rollout", wanted.rollout), ("worker", wanted.worker))
    for i, one in enumerate(wanted.evaluators):
        for name in ("metric", "evaluator", "version"):
            if not is_name(getattr(one, name)):
                raise RequestError(f"evaluators[{i}].{name}: {WANTED_NAME}")
