"""Batches into the database, one transaction a batch.

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
from collector.store import engine_spans, samples, span_rows, tables, waiting_scores
from collector.store.batch import Batch
from collector.store.bulk import Bulk, RelationalBulk
from collector.store.engine_spans import Joined
from collector.store.generation_rows import Row
from collector.store.reader import StoreConnection
from collector.store.rollups import deltas
from collector.store.scores import dump_spans
from collector.store.span_rows import SpanRows

_KEY = ("trace_id", "span_id", "id")
Key = tuple[bytes, bytes, int]
"""Trace id, span id, and the id that the span is to have."""


class Writer(ABC):
    """Writes batches, and looks after what they leave; the transaction must exclude other writers.

    What is abstract is where databases differ.
    """

    def __init__(self, connection: StoreConnection, bulk: Bulk, relational: RelationalBulk) -> None:
        self.connection = connection
        self._bulk = bulk
        """Takes what grows with traffic."""
        self._relational = relational
        """Takes the rest."""

    def write(self, batch: Batch) -> int:
        """Write the batch inside the connection's transaction; return how many spans were new."""
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
        # In the order of the key, for its index is the one that is not in the order of arrival.
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
        """Write generations whose spans are stored, and count them."""
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
            return  # most collectors never see one
        trace_ids = list(dict.fromkeys(rows.key[0] for _, rows in numbered))
        self._add_to_rollups(deltas.of_joined(self._join(trace_ids)))

    def _write_waiting_scores(self, batch: Batch) -> None:
        """Write the scores whose answers have arrived by now, with their spans."""
        if not (batch.of_responses or batch.spans) or not waiting_scores.any_waits(self.connection):
            return
        asked = list(dict.fromkeys(one.response_id for one in batch.of_responses))
        answered = waiting_scores.stored_among(self.connection, asked) if asked else {}
        for rows in batch.spans:
            made = rows.generation
            if made is not None and not rows.enriches and "response_id" in made:
                answered[made["response_id"]] = waiting_scores.Judged(*rows.key)
        if taken := waiting_scores.take(self.connection, answered):
            self._write_scores(taken)

    @abstractmethod
    def fold(self, *, at_most: int) -> int:
        """Fold pending rollup deltas into minutes and hours, and return how many."""

    @abstractmethod
    def any_joined(self) -> bool:
        """Return whether there is work for `finish_joins`."""

    @abstractmethod
    def finish_joins(self) -> int:
        """Carry out what committed joins left to do, and return how many those were."""

    @abstractmethod
    def delete_content(self, before: int, at_most: int) -> int:
        """Delete texts of spans before an id, and return how many rows or days those were."""

    @abstractmethod
    def drop_days(self, before: int) -> int:
        """Drop days that end by the id, of which nothing else tells any more; return how many."""

    @abstractmethod
    def end_of_piece(self, floor: int, before: int, at_most: int) -> int:
        """Return the end of the next ids from `floor` on to delete; `before` if none are left."""

    @abstractmethod
    def forget_spans(self, floor: int, end: int) -> int:
        """Delete the rows that tell of spans in [floor, end), scores and feedback too."""

    @abstractmethod
    def delete_minutes(self, before_unix_s: int, at_most: int) -> int:
        """Delete minutes of rollups before a time, and return how many rows."""

    @abstractmethod
    def _join(self, trace_ids: Sequence[bytes]) -> list[Joined]:
        """Join engines' spans that wait in these traces to their generations, if those are there.

        The rollups do not have what was added yet.
        """

    @abstractmethod
    def _begin(self, spans: Sequence[SpanRows]) -> int:
        """Return the id that the first of the spans may have: ids grow."""

    @abstractmethod
    def _kept(self, keys: Sequence[Key]) -> set[int]:
        """Return the ids of ours that got in: the others are of spans that were known already."""

    @abstractmethod
    def _without_stored(self, generations: Sequence[Row]) -> Sequence[Row]:
        """Leave out generations that a writer stored before it failed."""

    @abstractmethod
    def _insert_resources(self, resources: Iterable[span_rows.ResourceRow]) -> None:
        """Insert those that are not there yet."""

    @abstractmethod
    def _add_to_rollups(self, added: Sequence[deltas.Delta]) -> None:
        """Count what was added, in the rollups."""

    @abstractmethod
    def _write_scores(self, scores: Sequence[Score]) -> None:
        """Write scores under revisions above all others, each in the place of its earlier one."""

    @abstractmethod
    def _replace(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows in their order, each in the place of the one that has its key."""

    def _insert_series(self, added: Iterable[deltas.Series]) -> dict[deltas.Series, int]:
        """Insert the series that are new, and return the ids of all."""
        ids = {series: series.id for series in dict.fromkeys(added)}
        rows = [(id_, *series) for series, id_ in ids.items()]
        self._relational.insert_few_new(tables.series, ("id", *deltas.Series._fields), rows)
        return ids

    def _write_feedback(self, given: Sequence[Feedback]) -> None:
        self._replace(tables.feedback, [to_document(one) | _ids(one) for one in given])

    def _write_verdicts(self, verdicts: Sequence[StoredVerdict]) -> None:
        rows = [_verdict_row(stored) for stored in verdicts]
        columns = tuple(tables.verdict.c.keys())
        self._relational.insert_new(
            tables.verdict, columns, [(*map(r.get, columns),) for r in rows]
        )

    def _write_samples(self, taken: Sequence[EngineSample]) -> None:
        rows = [samples.to_row(sample) for sample in taken]
        self._relational.insert_new(tables.engine_sample, samples.COLUMNS, rows)


def _once(spans: Sequence[SpanRows]) -> Iterable[SpanRows]:
    """Return the spans in their order; of several with one key, the first."""
    once = {rows.key: rows for rows in spans}
    if len(once) == len(spans):
        return spans
    once.clear()
    for rows in spans:
        once.setdefault(rows.key, rows)
    return once.values()


def score_row(score: Score, revision: int) -> dict[str, Any]:
    """Return the row of a score that is posted for the first time."""
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
