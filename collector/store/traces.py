"""Reads of whole traces."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, select

from collector.contract import AttributeValue, Span, SpanStatus
from collector.errors import NotFoundError
from collector.protobuf.parts import read_resource
from collector.store import payload, texts
from collector.store.tables import resource, span, span_key


def trace(connection: Connection, trace_id: str) -> tuple[Span, ...]:
    """Return a trace's spans by start, then span id; raises `NotFoundError` if none is stored.

    An attribute whose text was deleted is absent.
    """
    ids = select(span_key.c.id).where(span_key.c.trace_id == bytes.fromhex(trace_id))
    rows = connection.execute(
        select(span, resource.c.attributes.label("resource"))
        .join_from(span, resource, resource.c.id == span.c.resource_id)
        .where(span.c.id.in_(ids))
        .order_by(span.c.start_unix_ns, span.c.span_id)
    ).all()
    if not rows:
        raise NotFoundError(f"no trace {trace_id}; its spans may not have arrived yet")
    texts_by_id = texts.read(connection, {row.id for row in rows})
    return tuple(_span(row, texts_by_id.get(row.id, {})) for row in rows)


def _span(row: Row[Any], text: Mapping[str, AttributeValue]) -> Span:
    kept = payload.unpack(row.payload)
    return Span(
        trace_id=row.trace_id.hex(),
        span_id=row.span_id.hex(),
        parent_span_id=row.parent_span_id.hex() if row.parent_span_id is not None else None,
        name=row.name,
        kind=row.kind,
        start_unix_ns=row.start_unix_ns,
        end_unix_ns=row.end_unix_ns,
        status=SpanStatus(row.status),
        status_message=row.status_message,
        scope_name=row.scope_name,
        attributes={**kept.attributes, **text},
        resource=read_resource(payload.decompress(row.resource)),
        events=kept.events,
        links=kept.links,
    )
