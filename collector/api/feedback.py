"""Feedback on generations: users' reactions to answers."""

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel

from collector.api import bodies, cursors
from collector.api.documents import Documents
from collector.api.ids import check_ids
from collector.api.pages import After, Limit, Rollout, Text
from collector.api.problems import LISTS, responses
from collector.api.routing import DescribedRoute
from collector.api.state import Collector
from collector.content import ContentPolicy
from collector.contract import Feedback
from collector.contract.names import has_control
from collector.errors import RequestError
from collector.store import Batch
from collector.store.evidence import feedback

router = APIRouter(prefix="/api/v1/feedback", tags=["feedback"], route_class=DescribedRoute)

_LONGEST_SOURCE = 255
_LAST_UNIX_NS = 2**63 - 1


Newest = Annotated[
    int | None, Query(ge=1, le=2**31 - 1, description="Only on this many newest generations.")
]


class FeedbackPage(BaseModel):
    """A page of feedback, ordered by the generations' arrival."""

    feedback: list[Feedback]
    next: str | None


@router.post(
    "",
    status_code=HTTPStatus.NO_CONTENT,
    response_class=Response,
    responses=responses(400, 401, 403, 413, 429, 503),
    openapi_extra=bodies.list_of("Feedback"),
)
async def post_feedback(request: Request, collector: Collector) -> Response:
    """Store a list of feedback: thumbs_up, thumbs_down, escalation or edit.

    Idempotent by trace id, span id, kind and source: the last one posted wins. Feedback may be
    posted before its span has arrived. Comments are content: stored redacted, or dropped.
    """
    document = await bodies.read_json(request, collector.settings.max_body_bytes)
    await collector.ingest.write(Batch(feedback=_feedback(document, collector.content)))
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get("", response_model=FeedbackPage, responses=LISTS)
def list_feedback(
    collector: Collector,
    rollout: Rollout,
    content: Text,
    limit: Limit = 1000,
    after: After = None,
    newest: Newest = None,
) -> Documents:
    """List the feedback on a rollout's generations, or only on the newest of them."""
    position = cursors.decode(after, feedback.FeedbackPosition)
    with collector.store.read() as connection:
        page = feedback.page(
            connection, rollout, content=content, limit=limit, after=position, newest=newest
        )
    return Documents({"feedback": page.records, "next": cursors.encode(page.next)})


def _feedback(document: Any, content: ContentPolicy) -> tuple[Feedback, ...]:  # Any: JSON, as sent
    given = bodies.records(document, Feedback, "feedback")
    return tuple(_checked(at, one, content) for at, one in given)


def _checked(at: str, given: Feedback, content: ContentPolicy) -> Feedback:
    check_ids(given, at)
    if not 0 < len(given.source) <= _LONGEST_SOURCE or has_control(given.source):
        raise RequestError(
            f"{at}.source: wanted 1 to {_LONGEST_SOURCE} characters, no control character"
        )
    if not 0 <= given.time_unix_ns <= _LAST_UNIX_NS:
        raise RequestError(f"{at}.time_unix_ns: wanted Unix nanoseconds, got {given.time_unix_ns}")
    comment = given.comment.replace("\0", "\ufffd") if given.comment is not None else None
    return replace(given, comment=content.apply_message(comment))
