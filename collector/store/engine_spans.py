"""The engine's side of a request, joined to the client's generation in the same trace.

Client and engine export apart, so either may arrive first: an engine's span waits here until its
client's generation is there. One whose trace has no generation after `PATIENCE_S` (a gateway sent
the trace on, and no client was instrumented) is a generation by itself.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, RowMapping, delete, select

from collector.contract.fields import WIRE
from collector.store.generation_rows import Row
from collector.store.tables import engine_span as e

PATIENCE_S: Final = 600
JOINED: Final = -1
"""The arrival of one that is joined, but whose generation has not got its times yet: overdue."""
ADDED: Final = tuple(name for name, wire in WIRE.items() if wire.of_engine)
"""Fields that an engine's span adds to its client's generation, unless that has them."""

CLIENT_COLUMNS: Final = (
    "rollout",
    "arm",
    "cohort",
    "start_unix_ns",
    "end_unix_ns",
    "error_type",
    *ADDED,
)
"""Columns that are read of the client's generation."""

_MOST_ANCESTORS: Final = 32


class Joined(NamedTuple):
    """A generation, and the fields that were added to it."""

    generation: Row
    """Its rollout, arm, cohort and times."""
    added: dict[str, float]


class Known(NamedTuple):
    """A span of the trace."""

    span_id: bytes
    parent_span_id: bytes | None
    generation_id: int | None
    """Set if it is a generation."""


class Client(NamedTuple):
    """A generation that engines' spans add to."""

    generation: Row
    """Its `CLIENT_COLUMNS`, without those that are NULL."""

    @classmethod
    def of(cls, row: RowMapping) -> "Client":
        """Return the one whose columns these are."""
        return cls({name: row[name] for name in CLIENT_COLUMNS if row[name] is not None})

    def add(self, fields: Mapping[str, Any]) -> dict[str, float]:
        """Take the fields that the generation lacks, and return them."""
        added = {n: fields[n] for n in ADDED if n in fields and n not in self.generation}
        self.generation.update(added)
        return added


def to_row(id_: int, span: Sequence[Any], fields: Row, arrived_unix_s: int) -> dict[str, Any]:
    """Return the row of an engine's span; Any: `span_rows.COLUMNS` but the id."""
    trace_id, span_id, parent_span_id = span[:3]
    kept = {name: value for name, value in fields.items() if not isinstance(value, bytes)}
    return {
        "id": id_,
        "trace_id": trace_id,
        "span_id": span_id,
        "parent_span_id": parent_span_id,
        "arrived_unix_s": arrived_unix_s,
        "fields": json.dumps(kept, ensure_ascii=False),
    }


def any_overdue(connection: Connection, before_unix_s: int) -> bool:
    """Return whether there is any for `finish_joins` or `take_overdue`."""
    found = select(e.c.id).where(e.c.arrived_unix_s < before_unix_s).limit(1)
    return connection.scalar(found) is not None


def take_overdue(connection: Connection, before_unix_s: int, *, at_most: int) -> list[Row]:
    """Return the engine's spans that waited in vain as generations' rows, and forget them."""
    rows = connection.execute(
        select(e)
        .where(e.c.arrived_unix_s < before_unix_s, e.c.arrived_unix_s != JOINED)
        .order_by(e.c.arrived_unix_s)
        .limit(at_most)
    ).all()
    if rows:
        connection.execute(delete(e).where(e.c.id.in_([row.id for row in rows])))
    return [
        {"id": row.id, "trace_id": row.trace_id, "span_id": row.span_id, **json.loads(row.fields)}
        for row in rows
    ]


def client_of(spans: Sequence[Known], parent_span_id: bytes) -> int | None:
    """Return the id of the nearest generation above the engine's span.

    If the spans between were not sent, the trace's only generation will do.
    """
    by_id = {known.span_id: known for known in spans}
    above: bytes | None = parent_span_id
    for _ in range(_MOST_ANCESTORS):
        known = by_id.get(above) if above is not None else None
        if known is None:
            break
        if known.generation_id is not None:
            return known.generation_id
        above = known.parent_span_id
    generations = [known.generation_id for known in spans if known.generation_id is not None]
    return generations[0] if len(generations) == 1 else None
