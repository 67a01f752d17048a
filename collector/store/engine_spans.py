"""Engine spans, joined to the client's generation in the same trace.

Client and engine export separately, so either may arrive first: an engine span waits here until the
client's generation is stored. If its trace has no generation after `PATIENCE_S` (a gateway
propagated the trace, but no client was instrumented), the engine span becomes a generation itself.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, RowMapping, delete, select

from collector.contract.conservation import COUNTS
from collector.contract.fields import WIRE
from collector.contract.wire_field import NotNegative
from collector.store.generation_rows import Row, load_list
from collector.store.tables import engine_span as e

PATIENCE_S: Final = 600
JOINED: Final = -1
"""Arrival time of a row that is joined but whose generation is not updated yet (ClickHouse).

Below every real time, so that the row counts as overdue.
"""
_TIMES: Final = tuple(name for name, wire in WIRE.items() if wire.of_engine)
_COUNTS: Final = tuple(
    name for name, wire in WIRE.items() if wire.not_negative is NotNegative.COUNTS
)
_OF_COUNTS: Final = (*_COUNTS, "spec_source", "counts_usable")
ADDED: Final = (*_TIMES, "spec_num_speculative_tokens", *_OF_COUNTS)
"""Fields that an engine span adds to the client's generation if it lacks them."""

CLIENT_COLUMNS: Final = (
    "rollout",
    "arm",
    "cohort",
    "start_unix_ns",
    "end_unix_ns",
    "error_type",
    "output_tokens",
    "quality",
    *ADDED,
)
"""Columns of the client's generation that a join reads."""

_MOST_ANCESTORS: Final = 32


class EnrichedGeneration(NamedTuple):
    """A generation and the fields that an engine span added to it."""

    generation: Row
    """`CLIENT_COLUMNS` without those that are NULL."""
    added: Row


class TraceSpan(NamedTuple):
    """A stored span of the trace."""

    span_id: bytes
    parent_span_id: bytes | None
    generation_id: int | None
    """Set if the span is a generation."""


class ClientGeneration(NamedTuple):
    """The client's generation, to which engine spans add fields."""

    generation: Row
    """`CLIENT_COLUMNS` without those that are NULL."""

    @classmethod
    def of(cls, row: RowMapping) -> "ClientGeneration":
        """Return the generation of a row with `CLIENT_COLUMNS`."""
        return cls({name: row[name] for name in CLIENT_COLUMNS if row[name] is not None})

    def add(self, fields: Mapping[str, Any]) -> Row:
        """Add the fields that the generation lacks and return them."""
        taken = ADDED if self._takes_counts(fields) else _TIMES
        added = {
            name: fields[name]
            for name in taken
            if name in fields and (name not in self.generation or name in _OF_COUNTS)
        }
        self.generation.update(added)
        return added

    def _takes_counts(self, fields: Mapping[str, Any]) -> bool:
        """Return whether the engine span's counts of speculation are the generation's.

        They are if the client sent none, right or wrong, and its answer has no more tokens than the
        engine's span: one with several choices has, and each choice has its own engine span.
        """
        known = self.generation
        if not fields.get("counts_usable") or any(name in known for name in _COUNTS):
            return False
        if any(flag.startswith(COUNTS) for flag in load_list(known.get("quality")) or ()):
            return False
        answered, generated = known.get("output_tokens"), fields.get("output_tokens")
        return answered is None or generated is None or answered <= generated


def to_row(id_: int, span: Sequence[Any], fields: Row, arrived_unix_s: int) -> dict[str, Any]:
    """Return the row of an engine span; Any: `span_rows.COLUMNS` without the id."""
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
    """Return whether any row needs `finish_joins` or `take_overdue`."""
    found = select(e.c.id).where(e.c.arrived_unix_s < before_unix_s).limit(1)
    return connection.scalar(found) is not None


def take_overdue(connection: Connection, before_unix_s: int, *, at_most: int) -> list[Row]:
    """Delete engine spans that waited too long and return them as generation rows."""
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


def client_generation_of(spans: Sequence[TraceSpan], parent_span_id: bytes) -> int | None:
    """Return the id of the nearest generation among the engine span's ancestors.

    If the spans between were not sent, return the trace's generation if it has exactly one.
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
