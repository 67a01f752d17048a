"""Pairs of a rollout: records in pages, or all of them as Arrow columns."""

from dataclasses import replace

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from collector.api import arrow, cursors
from collector.api.pages import After, Limit, Rollout, Text
from collector.api.problems import responses
from collector.api.scores import without_text
from collector.api.state import Collector
from collector.contract import Pair, PairKey, to_document
from collector.store import pairs, pairs_arrow, rollouts

router = APIRouter(prefix="/api/v1/pairs", tags=["pairs"])


class Pairs(BaseModel):
    """A page of pairs, by prompt id and repeat."""

    pairs: list[Pair]
    next: str | None


@router.get(
    "",
    response_model=Pairs,
    responses={200: arrow.OPENAPI, **responses(400, 401, 403, 404, 422, 429, 503)},
)
def list_pairs(
    collector: Collector,
    rollout: Rollout,
    cohort: str | None = None,
    *,
    content: Text,
    limit: Limit = 100,
    after: After = None,
    accept: arrow.Accept = None,
) -> Response:
    """List a rollout's pairs with their scores; with `content=true`, explained.

    With `Accept: application/vnd.apache.arrow.stream` the answer is one Arrow stream of the whole
    rollout, numbers only, one row a pair; the other parameters do not apply then.
    """
    if arrow.is_wanted(accept):
        with collector.store.read() as connection:
            rollouts.require(connection, rollout)
        return arrow.respond(*pairs_arrow.stream(collector.store, rollout))
    with collector.store.read() as connection:
        page = pairs.page(
            connection,
            rollout,
            cohort=cohort,
            content=content,
            limit=limit,
            after=_key(after) if after is not None else None,
        )
    shown = page.pairs if content else map(_without_text, page.pairs)
    return JSONResponse(
        {
            "pairs": [to_document(pair) for pair in shown],
            "next": cursors.encode(page.next),
        }
    )


def _without_text(pair: Pair) -> Pair:
    return replace(
        pair,
        baseline_scores=without_text(pair.baseline_scores),
        candidate_scores=without_text(pair.candidate_scores),
    )


def _key(after: str) -> PairKey:
    prompt_id, repeat = cursors.decode(after, [str, int])
    return PairKey(str(prompt_id), int(repeat))
