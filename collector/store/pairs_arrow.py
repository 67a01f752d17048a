"""A rollout's pairs as Arrow columns: one row a pair key, numbers only."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from sqlalchemy import Connection, RowMapping

from collector.store import rollouts, scores, sides
from collector.store.generation_rows import load_list
from collector.store.tables import generation as g

_COLUMNS = (
    g.c.cohort,
    g.c.end_unix_ns,
    g.c.error_type,
    g.c.ttft_s,
    g.c.tpot_s,
    g.c.input_tokens,
    g.c.output_tokens,
    g.c.fallback,
    g.c.counts_usable,
    g.c.spec_method,
    g.c.spec_steps,
    g.c.spec_draft_tokens,
    g.c.spec_accepted_tokens,
    g.c.spec_draft_tokens_per_pos,
    g.c.spec_accepted_tokens_per_pos,
    g.c.spec_acceptance_histogram,
    g.c.quality,
)
_COUNTS = (
    "spec_steps",
    "spec_draft_tokens",
    "spec_accepted_tokens",
    "spec_draft_tokens_per_pos",
    "spec_accepted_tokens_per_pos",
    "spec_acceptance_histogram",
)


class _Field(NamedTuple):
    """One column of a side: its name, its type, and how a present side's row gives it."""

    name: str
    type: pa.DataType
    value: Callable[[RowMapping], Any]


def table(connection: Connection, rollout: str) -> pa.Table:
    """Return the rollout's pairs, ordered by prompt id and repeat.

    Columns: `prompt_id`, `repeat`, `cohort`, then for each side, prefixed `baseline_` and
    `candidate_`, its fields, `duplicates`, and `score_{metric}` for every metric scored in the
    rollout. A side that never arrived has nulls throughout, but 0 duplicates. Raises
    `NotFoundError` for an unknown rollout.
    """
    rollouts.require(connection, rollout)
    pairs = list(sides.read(connection, _COLUMNS, rollout))
    scored = scores.latest_values(connection, rollout)
    columns: dict[str, pa.Array] = {
        "prompt_id": pa.array([pair.key.prompt_id for pair in pairs], pa.string()),
        "repeat": pa.array([pair.key.repeat for pair in pairs], pa.int64()),
        "cohort": pa.array([pair.cohort for pair in pairs], pa.string()),
    }
    for side, rows, duplicates in (
        ("baseline", [p.baseline for p in pairs], [p.baseline_duplicates for p in pairs]),
        ("candidate", [p.candidate for p in pairs], [p.candidate_duplicates for p in pairs]),
    ):
        for name, array in _side(rows, duplicates, scored):
            columns[f"{side}_{name}"] = array
    return pa.table(columns)


def to_stream(data: pa.Table) -> bytes:
    """Return the table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_table(data)
    return bytes(sink.getvalue())


def _side(
    rows: list[RowMapping | None],
    duplicates: list[int],
    scored: Mapping[str, Mapping[scores.SpanKey, float | None]],
) -> Iterable[tuple[str, pa.Array]]:
    for field in _fields():
        values = [None if row is None else field.value(row) for row in rows]
        yield field.name, pa.array(values, field.type)
    yield "duplicates", pa.array(duplicates, pa.int64())
    for metric, by_span in scored.items():
        values = [
            None if row is None else by_span.get((row["trace_id"], row["span_id"])) for row in rows
        ]
        yield f"score_{metric}", pa.array(values, pa.float64())


def _fields() -> Iterable[_Field]:
    numbers = pa.list_(pa.int64())
    yield _Field("trace_id", pa.string(), lambda row: row["trace_id"].hex())
    yield _Field("span_id", pa.string(), lambda row: row["span_id"].hex())
    yield _plain("start_unix_ns", pa.int64())
    yield _plain("error_type", pa.string())
    yield _plain("ttft_s", pa.float64())
    yield _plain("tpot_s", pa.float64())
    yield _Field("e2e_s", pa.float64(), _e2e_s)
    yield _plain("input_tokens", pa.int64())
    yield _plain("output_tokens", pa.int64())
    yield _plain("fallback", pa.bool_())
    yield _plain("counts_usable", pa.bool_())
    yield _Field("speculated", pa.bool_(), _speculated)
    yield _plain("spec_steps", pa.int64())
    yield _plain("spec_draft_tokens", pa.int64())
    yield _plain("spec_accepted_tokens", pa.int64())
    for name in ("spec_draft_tokens_per_pos", "spec_accepted_tokens_per_pos"):
        yield _Field(name, numbers, lambda row, name=name: load_list(row[name]))  # type: ignore[misc]
    yield _Field("quality", pa.list_(pa.string()), lambda row: load_list(row["quality"]) or ())


def _plain(name: str, kind: pa.DataType) -> _Field:
    return _Field(name, kind, lambda row: row[name])


def _e2e_s(row: RowMapping) -> float:
    return float((row["end_unix_ns"] - row["start_unix_ns"]) / 1e9)


def _speculated(row: RowMapping) -> bool:
    """Say whether the generation has a speculation method or any speculation count."""
    return row["spec_method"] is not None or any(row[name] is not None for name in _COUNTS)
