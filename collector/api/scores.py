"""Scores of generations: posted by evaluators, read by the gate and the dashboard."""

from collections.abc import Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel

from collector.api import bodies, cursors
from collector.api.access import grant_in, may_read_content
from collector.api.documents import Documents
from collector.api.ids import check_ids
from collector.api.pages import After, Limit, Rollout
from collector.api.problems import LISTS, responses
from collector.api.routing import DescribedRoute
from collector.api.state import Collector
from collector.contract import Score
from collector.contract.names import WANTED_NAME, is_name
from collector.errors import RequestError
from collector.store import Batch, scores

router = APIRouter(prefix="/api/v1/scores", tags=["scores"], route_class=DescribedRoute)


class ScorePage(BaseModel):
    """A page of scores, ordered by the generations' arrival."""

    scores: list[Score]
    next: str | None


@router.post(
    "",
    status_code=HTTPStatus.NO_CONTENT,
    response_class=Response,
    responses=responses(400, 401, 403, 413, 429, 503),
    openapi_extra=bodies.list_of("Score"),
)
async def post_scores(request: Request, collector: Collector) -> Response:
    """Store a list of scores.

    Idempotent by trace id, span id, metric, evaluator and version: the last one posted wins. A
    score may be posted before its span has arrived. An explanation is content: stored redacted, or
    dropped. `key_id` is set to the posting key's id; a sent value is ignored.
    """
    document = await bodies.read_json(request, collector.settings.max_body_bytes)
    key_id = grant_in(request.scope).key_id
    kept = tuple(
        replace(collector.content.apply_score(score), key_id=key_id) for score in _scores(document)
    )
    await collector.ingest.write(Batch(scores=kept))
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get("", response_model=ScorePage, responses=LISTS)
def list_scores(
    collector: Collector,
    request: Request,
    rollout: Rollout,
    metric: Annotated[str | None, Query(description="Only this metric.")] = None,
    limit: Limit = 1000,
    after: After = None,
) -> Documents:
    """List the scores of a rollout's generations; explanations need the scope content.

    A score has a label, an explanation, the evaluator's seconds and cost in US dollars, the spans
    of the answer that it is about, and the posting key's id. Of the posts of one evaluator and
    version, the last one counts.
    """
    with collector.store.read() as connection:
        page = scores.page(
            connection,
            rollout,
            metric=metric,
            limit=limit,
            after=cursors.decode(after, scores.ScorePosition),
        )
    shown = page.records if may_read_content(request) else without_text(page.records)
    return Documents({"scores": shown, "next": cursors.encode(page.next)})


def without_text(given: Iterable[Score]) -> tuple[Score, ...]:
    """Return the scores without their explanations."""
    return tuple(replace(score, explanation=None) for score in given)


def _scores(document: Any) -> tuple[Score, ...]:  # Any: JSON, as sent
    return tuple(_checked(at, score) for at, score in bodies.records(document, Score, "scores"))


def _checked(at: str, score: Score) -> Score:
    check_ids(score, at)
    for name in ("metric", "evaluator", "version"):
        if not is_name(getattr(score, name)):
            raise RequestError(f"{at}.{name}: {WANTED_NAME}")
    return score
