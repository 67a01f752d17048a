"""Batches into the database, one transaction a batch.

Idempotent: a span is stored once by (trace_id, span_id) and never changed, a verdict once by its
id; a score replaces the earlier one of the same span, metric, evaluator and version.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Dialect, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite

from collector.contract import Score, StoredVerdict, to_document
from collector.store import generation_rows, span_rows, tables
from collector.store.batch import Batch

# Any: the two dialects' inserts have no common type.
_INSERTS: Mapping[str, Callable[[Table], Any]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}


class Writer:
    """Writes batches on connections of one SQL dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._insert = _INSERTS[dialect.name]
        # Tuples straight to the driver: SQLAlchemy's own executemany builds a mapping for each row,
        # which costs more than the insert.
        mark = "?" if dialect.paramstyle == "qmark" else "%s"
        self._span_sql = (
            _insert_sql(tables.span, ("id", *span_rows.COLUMNS), mark)
            + " ON CONFLICT (trace_id, span_id) DO NOTHING"
        )
        self._payload_sql = _insert_sql(tables.span_payload, ("id", "attributes", "resource"), mark)
        self._content_sql = _insert_sql(tables.content, ("id", "attributes"), mark)
        self._generation_sql = _insert_sql(
            tables.generation, ("id", *generation_rows.COLUMNS), mark
        )

    def write(self, connection: Connection, batch: Batch) -> int:
        """Write the batch inside the connection's transaction, which must exclude other writers.

        Returns how many of its spans were new.
        """
        inserted = self._write_spans(connection, batch.spans) if batch.spans else 0
        if batch.scores:
            self._write_scores(connection, batch.scores)
        if batch.verdicts:
            self._write_verdicts(connection, batch.verdicts)
        return inserted

    def _write_spans(self, connection: Connection, spans: Sequence[span_rows.SpanRows]) -> int:
        first_id = (connection.scalar(select(func.max(tables.span.c.id))) or 0) + 1
        numbered = list(enumerate(spans, first_id))
        inserted = connection.exec_driver_sql(
            self._span_sql, [(id_, *rows.span) for id_, rows in numbered]
        ).rowcount
        if inserted != len(numbered):
            # Some were known already; the ids that did get in say which were not.
            kept = set(
                connection.scalars(select(tables.span.c.id).where(tables.span.c.id >= first_id))
            )
            numbered = [(id_, rows) for id_, rows in numbered if id_ in kept]
        for sql, rows_of_table in (
            (self._payload_sql, [(i, rows.attributes, rows.resource) for i, rows in numbered]),
            (self._content_sql, [(i, rows.text) for i, rows in numbered if rows.text is not None]),
            (
                self._generation_sql,
                [(i, *rows.generation) for i, rows in numbered if rows.generation is not None],
            ),
        ):
            if rows_of_table:
                connection.exec_driver_sql(sql, rows_of_table)
        return len(numbered)

    def _write_scores(self, connection: Connection, scores: Sequence[Score]) -> None:
        first = (connection.scalar(select(func.max(tables.score.c.revision))) or 0) + 1
        insert = self._insert(tables.score)
        key = [column.name for column in tables.score.primary_key]
        replaced = {c.name: c for c in insert.excluded if c.name not in key}
        connection.execute(
            insert.on_conflict_do_update(index_elements=key, set_=replaced),
            [_score_row(score, revision) for revision, score in enumerate(scores, first)],
        )

    def _write_verdicts(self, connection: Connection, verdicts: Sequence[StoredVerdict]) -> None:
        connection.execute(
            self._insert(tables.verdict).on_conflict_do_nothing(index_elements=["id"]),
            [_verdict_row(stored) for stored in verdicts],
        )


def _insert_sql(table: Table, columns: Sequence[str], mark: str) -> str:
    names, marks = ", ".join(columns), ", ".join([mark] * len(columns))
    return f"INSERT INTO {table.name} ({names}) VALUES ({marks})"  # noqa: S608  # names are ours


def _score_row(score: Score, revision: int) -> Mapping[str, Any]:
    return to_document(score) | {
        "trace_id": bytes.fromhex(score.trace_id),
        "span_id": bytes.fromhex(score.span_id),
        "revision": revision,
    }


def _verdict_row(stored: StoredVerdict) -> Mapping[str, Any]:
    return {
        "id": stored.id,
        "rollout": stored.verdict.rollout,
        "posted_unix_ns": stored.posted_unix_ns,
        "document": json.dumps(to_document(stored.verdict), ensure_ascii=False, allow_nan=False),
    }
