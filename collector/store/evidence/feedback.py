"""Reads of feedback, in pages."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, and_, select, tuple_

from collector.contract import Feedback, FeedbackKind
from collector.store import rollouts
from collector.store.evidence import generations
from collector.store.pages import Page, page_of
from collector.store.row_records import record_of
from collector.store.tables import feedback as f
from collector.store.tables import generation as g

_OF_GENERATION = and_(f.c.trace_id == g.c.trace_id, f.c.span_id == g.c.span_id)


class FeedbackPosition(NamedTuple):
    """A cursor: the last feedback of a page."""

    id: int
    """The generation's id."""
    kind: str
    source: str


def page(  # all but two by keyword
    connection: Connection,
    rollout: str,
    *,
    content: bool,
    limit: int,
    after: FeedbackPosition | None,
    newest: int | None = None,
) -> Page[Feedback, FeedbackPosition]:
    """Return the feedback on a rollout's generations after a cursor, with comments if `content`.

    Ordered by the generation's arrival, then by kind and source; limited to the `newest`
    generations if given. Raises `NotFoundError` for an unknown rollout.
    """
    rollouts.require(connection, rollout)
    order = (g.c.id, f.c.kind, f.c.source)
    statement = select(g.c.id, f).join_from(g, f, _OF_GENERATION).where(g.c.rollout == rollout)
    if newest is not None:
        # Feedback is rare: without a bound, the query would scan the whole rollout.
        statement = statement.where(g.c.id >= generations.oldest_of(connection, rollout, newest))
    if after is not None:
        # The first condition uses the index; the second is exact.
        statement = statement.where(g.c.id >= after.id, tuple_(*order) > tuple_(*after))
    rows = connection.execute(statement.order_by(*order).limit(limit + 1)).all()

    def record(row: Row[Any]) -> Feedback:
        return record_of(
            Feedback,
            row,
            trace_id=row.trace_id.hex(),
            span_id=row.span_id.hex(),
            kind=FeedbackKind(row.kind),
            comment=row.comment if content else None,
        )

    return page_of(rows, limit, record, lambda row: FeedbackPosition(row.id, row.kind, row.source))
