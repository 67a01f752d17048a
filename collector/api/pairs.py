"""Pairs of a rollout, as pages or an Arrow stream."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel

from collector import dialects
from collector.api import arrow, cursors
from collector.api.documents import Documents
from collector.api.pages import After, Cohort, Limit, Rollout, Text
from collector.api.problems import LISTS
from collector.api.routing import DescribedRoute
from collector.api.scores import without_text
from collector.api.state import Collector
from collector.contract import Pair, PairKey
from collector.errors import RequestError
from collector.store import pair_changes, pairs_arrow, rollouts
from collector.store.evidence import pairs

router = APIRouter(prefix="/api/v1/pairs", tags=["pairs"], route_class=DescribedRoute)

_LAST = 2**63 - 1
PromptId = Annotated[str | None, Query(description="With repeat: only this pair.")]
Repeat = Annotated[int | None, Query(ge=0, le=_LAST, description="With prompt_id: only this pair.")]


class Pairs(BaseModel):
    """A page of pairs, ordered by prompt id and repeat."""

    pairs: list[Pair]
    next: str | None


_After = Annotated[
    int | None,
    Query(ge=0, le=_LAST, description="Only what changed after this place; Arrow only."),
]
_UpTo = Annotated[int | None, Query(ge=0, le=_LAST, description="End of what is read; Arrow only.")]

_Younger = Annotated[
    int,
    Query(ge=0, le=_LAST, description="Only pairs that arrived after this place; Arrow only."),
]


@router.get(
    "",
    response_model=Pairs,
    responses={200: arrow.OPENAPI, **LISTS},
)
def list_pairs(  # noqa: PLR0913  # one parameter per query parameter
    collector: Collector,
    rollout: Rollout,
    cohort: Cohort = None,
    prompt_id: PromptId = None,
    repeat: Repeat = None,
    *,
    content: Text,
    limit: Limit = 100,
    after: After = None,
    arrived_after: _After = None,
    scored_after: _After = None,
    younger_than: _Younger = 0,
    arrived_up_to: _UpTo = None,
    scored_up_to: _UpTo = None,
    accept: arrow.Accept = None,
) -> Response:
    """List a rollout's pairs with their scores; `content=true` adds text and explanations.

    `prompt_id` and `repeat` together select one pair.

    With `Accept: application/vnd.apache.arrow.stream` the response is one Arrow stream of the whole
    rollout, without content, one row per pair; the paging parameters are ignored. With
    `arrived_after` and `scored_after` it contains only the changes since that position, and its
    schema's metadata contain the window's end: `arrived_up_to`, `scored_up_to` and `more`. Without
    them it contains pairs whose generations all arrived after `younger_than`, generations up to
    `arrived_up_to`, and scores up to `scored_up_to`; the metadata contain these bounds, and the
    same bounds give the same pairs. Requests of sentinels, which belong to no pair, stand in the
    metadata as JSON (`sentinels`).
    """
    if arrow.is_wanted(accept) and arrived_after is not None and scored_after is not None:
        return _changes(collector, rollout, pair_changes.Position(arrived_after, scored_after))
    if arrow.is_wanted(accept):
        with collector.store.read() as connection:
            rollouts.require(connection, rollout)
            now = pairs_arrow.bounds_now(connection, younger_than)
        bounds = now._replace(
            arrived_up_to=now.arrived_up_to if arrived_up_to is None else arrived_up_to,
            scored_up_to=now.scored_up_to if scored_up_to is None else scored_up_to,
        )
        return arrow.respond(*pairs_arrow.stream(collector.store, rollout, bounds))
    with collector.store.read() as connection:
        page = pairs.page(
            connection,
            rollout,
            cohort=cohort,
            content_of=dialects.content if content else None,
            limit=limit,
            after=cursors.decode(after, PairKey),
            only=_only(prompt_id, repeat),
        )
    shown = page.records if content else [*map(_without_text, page.records)]
    return Documents({"pairs": shown, "next": cursors.encode(page.next)})


def _changes(collector: Collector, rollout: str, position: pair_changes.Position) -> Response:
    with collector.store.read() as connection:
        found = pair_changes.since(connection, rollout, position)
    end = {
        "arrived_up_to": str(found.position.generation),
        "scored_up_to": str(found.position.score),
        "more": str(int(found.more)),
    }
    table = found.table.replace_schema_metadata(end)
    return arrow.respond(table.schema, table.to_batches())


def _without_text(pair: Pair) -> Pair:
    return replace(
        pair,
        baseline_scores=without_text(pair.baseline_scores),
        candidate_scores=without_text(pair.candidate_scores),
    )


def _only(prompt_id: str | None, repeat: int | None) -> PairKey | None:
    if prompt_id is None and repeat is None:
        return None
    if prompt_id is None or repeat is None:
        raise RequestError("prompt_id and repeat name a pair together: give both, or neither")
    if "\0" in prompt_id:
        raise RequestError("prompt_id: holds the character U+0000, which no stored id has")
    return PairKey(prompt_id, repeat)
