"""Writes of batches, one transaction per batch.

Idempotent: a span is stored once by (trace_id, span_id) and never changed, a verdict once by its
id, a sample once by its metric, time and series; a score replaces the earlier one of the same span,
metric, evaluator and version, feedback the earlier one of the same span, kind and source.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Table, insert, select

from collector.contract import EngineSample, Feedback, Score, StoredVerdict, to_document
from collector.store import (
    engine_spans,
    samples,
    span_rows,
    tables,
    verdict_changes,
    waiting_scores,
)
from collector.store.batch import Batch
from collector.store.bulk import Bulk, RelationalBulk
from collector.store.engine_spans import EnrichedGeneration
from collector.store.generation_rows import Row
from collector.store.reader import StoreConnection
from collector.store.rollups import deltas
from collector.store.scores import dump_spans
from collector.store.span_rows import SpanRows

_KEY = ("trace_id", "span_id", "id")
Key = tuple[bytes, bytes, int]
"""Trace id, span id, and the id assigned to the span."""


class Writer(ABC):
    """Writes batches and does upkeep; the transaction must exclude other writers.

    Subclasses implement the parts that differ between databases.
    """

    def __init__(self, connection: StoreConnection, bulk: Bulk, relational: RelationalBulk) -> None:
        self.connection = connection
        self._bulk = bulk
        """For the tables that grow with traffic."""
        self._relational = relational
        """For the other tables."""

    def write(self, batch: Batch) -> int:
        """Write the batch in the connection's transaction; return how many spans were new."""
        inserted = self._write_spans(batch.spans) if batch.spans else 0
        if batch.scores:
            self._write_scores(batch.scores)
        if batch.of_responses:
            waiting_scores.keep(self.connection, batch.of_responses, int(time.time()))
        self._write_waiting_scores(batch)
        if batch.verdicts:
            self._write_verdicts(batch.verdicts)
        if batch.samples:
            self._write_samples(batch.samples)
        if batch.feedback:
            self._write_feedback(batch.feedback)
        return inserted

    def _write_spans(self, spans: Sequence[SpanRows]) -> int:
        numbered = list(span_rows.number(_once(spans), self._begin(spans)))
        # Sorted by key: the key's index is the only one not in the order of arrival.
        keys = sorted((*rows.key, id_) for id_, rows in numbered)
        if self._bulk.insert_new(tables.span_key, _KEY, keys) != len(keys):
            kept = self._kept(keys)
            numbered = [(id_, rows) for id_, rows in numbered if id_ in kept]
        if not numbered:
            return 0
        self._insert_resources(rows.resource for _, rows in numbered)
        self._bulk.insert(
            tables.span, span_rows.COLUMNS, [(id_, *rows.span) for id_, rows in numbered]
        )
        if shared := span_rows.to_rows(numbered):
            self._bulk.insert(tables.content, ("id", "attributes"), shared)
        generations = []
        for id_, rows in numbered:
            if rows.generation is not None and not rows.enriches:
                rows.generation["id"] = id_  # in place: a copy of each takes a microsecond
                generations.append(rows.generation)
        if generations:
            self.write_generations(generations)
        self._join_engine_spans(numbered)
        return len(numbered)

    def write_generations(self, generations: Sequence[Row]) -> None:
        """Write generations whose spans are stored, and add them to the rollups."""
        self._bulk.insert_sparse(tables.generation, self._without_stored(generations))
        self._add_to_rollups(deltas.of_rows(generations))

    def _join_engine_spans(self, numbered: Sequence[tuple[int, SpanRows]]) -> None:
        now_unix_s = int(time.time())
        arrived = [
            engine_spans.to_row(id_, rows.span, rows.generation, now_unix_s)
            for id_, rows in numbered
            if rows.enriches and rows.generation is not None
        ]
        if arrived:
            self.connection.execute(insert(tables.engine_span), arrived)
        if self.connection.scalar(select(tables.engine_span.c.id).limit(1)) is None:
            return  # most collectors never receive an engine span
        trace_ids = list(dict.fromkeys(rows.key[0] for _, rows in numbered))
        self._add_to_rollups(deltas.of_joined(self._join(trace_ids)))

    def _write_waiting_scores(self, batch: Batch) -> None:
        """Write the waiting scores whose generations are stored by now."""
        if not (batch.of_responses or batch.spans) or not waiting_scores.any_waits(self.connection):
            return
        asked = list(dict.fromkeys(one.response_id for one in batch.of_responses))
        answered = waiting_scores.stored_among(self.connection, asked) if asked else {}
        for rows in batch.spans:
            made = rows.generation
            if made is not None and not rows.enriches and "response_id" in made:
                answered[made["response_id"]] = waiting_scores.SpanKey(*rows.key)
        if taken := waiting_scores.take(self.connection, answered):
            self._write_scores(taken)

    @abstractmethod
    def fold(self, *, at_most: int) -> int:
        """Fold pending rollup deltas into minutes and hours; return how many were folded."""

    @abstractmethod
    def any_joined(self) -> bool:
        """Return whether there is work for `finish_joins`."""

    @abstractmethod
    def finish_joins(self) -> int:
        """Update the generations of committed joins; return how many joins were finished."""

    @abstractmethod
    def delete_content(self, before: int, at_most: int) -> int:
        """Delete texts of spans before an id; return how many rows or days were deleted."""

    @abstractmethod
    def drop_days(self, before: int) -> int:
        """Drop days that end at or before the id; return how many were dropped.

        No rows outside the dropped partitions may refer to these days any more.
        """

    @abstractmethod
    def end_of_piece(self, floor: int, before: int, at_most: int) -> int:
        """Return the end of the next chunk of ids to delete from `floor`; `before` if none left."""

    @abstractmethod
    def forget_spans(self, floor: int, end: int) -> int:
        """Delete the rows that refer to spans in [floor, end), including scores and feedback."""

    @abstractmethod
    def delete_minutes(self, before_unix_s: int, at_most: int) -> int:
        """Delete rollup minutes before a time; return how many rows were deleted."""

    @abstractmethod
    def _join(self, trace_ids: Sequence[bytes]) -> list[EnrichedGeneration]:
        """Join waiting engine spans of these traces to their generations, if stored.

        The caller must add the joined fields to the rollups.
        """

    @abstractmethod
    def _begin(self, spans: Sequence[SpanRows]) -> int:
        """Return the lowest id for the first of the spans; ids only grow."""

    @abstractmethod
    def _kept(self, keys: Sequence[Key]) -> set[int]:
        """Return the ids of these keys that were inserted; the other spans were stored before."""

    @abstractmethod
    def _without_stored(self, generations: Sequence[Row]) -> Sequence[Row]:
        """Return the generations without those that a failed writer has stored already."""

    @abstractmethod
    def _insert_resources(self, resources: Iterable[span_rows.ResourceRow]) -> None:
        """Insert the resources that are not stored yet."""

    @abstractmethod
    def _add_to_rollups(self, added: Sequence[deltas.Delta]) -> None:
        """Write deltas for the rollups."""

    @abstractmethod
    def _write_scores(self, scores: Sequence[Score]) -> None:
        """Write scores with revisions above all stored ones, each replacing its earlier post."""

    @abstractmethod
    def _replace(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows in order, each replacing the row with the same key."""

    def _insert_series(self, added: Iterable[deltas.Series]) -> dict[deltas.Series, int]:
        """Insert the new ones of these series, and return the ids of all."""
        ids = {series: series.id for series in dict.fromkeys(added)}
        rows = [(id_, *series) for series, id_ in ids.items()]
        self._relational.insert_few_new(tables.series, ("id", *deltas.Series._fields), rows)
        return ids

    def _write_feedback(self, given: Sequence[Feedback]) -> None:
        self._replace(tables.feedback, [to_document(one) | _ids(one) for one in given])

    def _write_verdicts(self, verdicts: Sequence[StoredVerdict]) -> None:
        columns = tuple(tables.verdict.c.keys())
        for stored in verdicts:
            row = _verdict_row(stored)
            values = (*map(row.get, columns),)
            if self._relational.insert_new(tables.verdict, columns, [values]):
                verdict_changes.notify(self.connection, stored)

    def _write_samples(self, taken: Sequence[EngineSample]) -> None:
        rows = [samples.to_row(sample) for sample in taken]
        self._relational.insert_new(tables.engine_sample, samples.COLUMNS, rows)


def _once(spans: Sequence[SpanRows]) -> Iterable[SpanRows]:
    """Return the spans in order, only the first of several with the same key."""
    once = {rows.key: rows for rows in spans}
    if len(once) == len(spans):
        return spans
    once.clear()
    for rows in spans:
        once.setdefault(rows.key, rows)
    return once.values()


def score_row(score: Score, revision: int) -> dict[str, Any]:
    """Return the row of a score, as posted for the first time."""
    spans = None if score.spans is None else dump_spans(score.spans)
    revisions = {"revision": revision, "first_revision": revision}
    return to_document(score) | _ids(score) | {"spans": spans} | revisions


def _ids(of: Score | Feedback) -> dict[str, bytes]:
    return {"trace_id": bytes.fromhex(of.trace_id), "span_id": bytes.fromhex(of.span_id)}


def _verdict_row(stored: StoredVerdict) -> Mapping[str, Any]:
    return {
        "id": stored.id,
        "rollout": stored.verdict.rollout,
        "posted_unix_ns": stored.posted_unix_ns,
        "document": json.dumps(to_document(stored.verdict), ensure_ascii=False, allow_nan=False),
        "who": stored.who,
        "key_id": stored.key_id,
    }
