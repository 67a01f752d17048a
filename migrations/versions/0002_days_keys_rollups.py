"""Days, keys and rollups: ids that tell the day, one key table, the sender's own bytes, sums.

A span's attributes were JSON and become the bytes of OTLP; what has arrived so far counts as
arrived on the day of the migration, unless it came down from this schema and kept its ids. Rollups
are made of the generations that are there. The way back loses events, links and what the rollups
alone would say, for there was no place for them.
"""

import time
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.resource.v1 import resource_pb2

from collector.content import DROP
from collector.contract.span_json import dump_attributes, load_attributes
from collector.otlp import wire
from collector.otlp.values import write_attribute
from collector.store import digests, partitions, payload
from collector.store.rollups import deltas

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_OLD = ("span_payload", "content", "generation", "span")
_NEW = ("generation", "content", "span", "span_key", "resource")
_ROLLUPS = (
    "engine_span",
    "series",
    "rollup_delta",
    "rollup_minute",
    "rollup_hour",
    "pair_count",
    "progress",
)
_ROWS_AT_ONCE = 1000


def upgrade() -> None:
    _set_aside(_OLD, ("ix_generation_rollout_id", "ix_generation_rollout_prompt_id_repeat_arm"))
    _create_new()
    _copy_up(op.get_bind())
    for name in _OLD:
        op.drop_table(f"old_{name}")


def downgrade() -> None:
    for name in _ROLLUPS:
        op.drop_table(name)
    _set_aside(
        _NEW,
        (
            "ix_generation_rollout_id",
            "ix_generation_rollout_prompt_id_repeat_arm",
        ),
    )
    _create_old()
    _copy_down(op.get_bind())
    for name in _NEW:
        op.drop_table(f"old_{name}")


def _set_aside(names: Sequence[str], indexes: Sequence[str]) -> None:
    """Rename tables, and on PostgreSQL the constraints whose names their successors need."""
    for index in indexes:
        op.drop_index(index)
    for name in names:
        op.rename_table(name, f"old_{name}")
    if op.get_bind().dialect.name != "postgresql":
        return
    constraints = op.get_bind().execute(
        sa.text(
            "SELECT conrelid::regclass AS owner, conname AS name FROM pg_constraint "
            "WHERE conrelid = ANY(ARRAY(SELECT unnest(CAST(:tables AS text[]))::regclass)) "
            "AND contype <> 'n'"
        ),
        {"tables": [f"old_{name}" for name in names]},
    )
    for constraint in constraints.all():
        op.execute(
            f"ALTER TABLE {constraint.owner} "
            f"RENAME CONSTRAINT {constraint.name} TO old_{constraint.name}"
        )


def _create_new() -> None:
    op.create_table(
        "resource",
        sa.Column("id", _ID, autoincrement=False, nullable=False),
        sa.Column("attributes", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resource"),
    )
    op.create_table(
        "span",
        sa.Column("id", _ID, autoincrement=False, nullable=False),
        sa.Column("trace_id", sa.LargeBinary(), nullable=False),
        sa.Column("span_id", sa.LargeBinary(), nullable=False),
        sa.Column("parent_span_id", sa.LargeBinary(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("end_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("status_message", sa.Text(), nullable=True),
        sa.Column("scope_name", sa.Text(), nullable=True),
        sa.Column("resource_id", sa.BigInteger(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_span"),
        postgresql_partition_by="RANGE (id)",
    )
    op.create_table(
        "span_key",
        sa.Column("trace_id", sa.LargeBinary(), nullable=False),
        sa.Column("span_id", sa.LargeBinary(), nullable=False),
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("trace_id", "span_id", name="pk_span_key"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "content",
        sa.Column("id", _ID, autoincrement=False, nullable=False),
        sa.Column("attributes", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_content"),
        postgresql_partition_by="RANGE (id)",
    )
    _create_generation()
    op.create_table(
        "engine_span",
        sa.Column("id", _ID, autoincrement=False, nullable=False),
        sa.Column("trace_id", sa.LargeBinary(), nullable=False),
        sa.Column("span_id", sa.LargeBinary(), nullable=False),
        sa.Column("parent_span_id", sa.LargeBinary(), nullable=False),
        sa.Column("arrived_unix_s", sa.BigInteger(), nullable=False),
        sa.Column("fields", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_engine_span"),
    )
    op.create_index("ix_engine_span_trace_id", "engine_span", ["trace_id"])
    op.create_index("ix_engine_span_arrived_unix_s", "engine_span", ["arrived_unix_s"])
    op.create_table(
        "series",
        sa.Column("id", _ID, autoincrement=False, nullable=False),
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("arm", sa.String(), nullable=True),
        sa.Column("cohort", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_series"),
    )
    op.create_index("ix_series_rollout", "series", ["rollout"])
    op.create_table(
        "rollup_delta",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("series_id", sa.BigInteger(), nullable=False),
        sa.Column("start_unix_s", sa.BigInteger(), nullable=False),
        sa.Column("first_start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_end_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("counts", sa.LargeBinary(), nullable=False),
        sa.Column("moments", sa.LargeBinary(), nullable=False),
        sa.Column("bins", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_rollup_delta"),
    )
    op.create_index(
        "ix_rollup_delta_series_id_start_unix_s", "rollup_delta", ["series_id", "start_unix_s"]
    )
    op.create_table(
        "rollup_minute",
        sa.Column("series_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("start_unix_s", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("first_start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_end_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("counts", sa.LargeBinary(), nullable=False),
        sa.Column("moments", sa.LargeBinary(), nullable=False),
        sa.Column("bins", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("series_id", "start_unix_s", name="pk_rollup_minute"),
    )
    op.create_table(
        "rollup_hour",
        sa.Column("series_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("start_unix_s", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("first_start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_end_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("counts", sa.LargeBinary(), nullable=False),
        sa.Column("moments", sa.LargeBinary(), nullable=False),
        sa.Column("bins", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("series_id", "start_unix_s", name="pk_rollup_hour"),
    )
    op.create_table(
        "pair_count",
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("pairs", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("rollout", name="pk_pair_count"),
    )
    op.create_table(
        "progress",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_progress"),
    )


def _create_generation() -> None:
    op.create_table(
        "generation",
        sa.Column("id", _ID, autoincrement=False, nullable=False),
        sa.Column("trace_id", sa.LargeBinary(), nullable=False),
        sa.Column("span_id", sa.LargeBinary(), nullable=False),
        sa.Column("start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("end_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("dialect", sa.String(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=True),
        sa.Column("request_model", sa.Text(), nullable=True),
        sa.Column("response_model", sa.Text(), nullable=True),
        sa.Column("max_tokens", sa.BigInteger(), nullable=True),
        sa.Column("temperature", sa.Double(), nullable=True),
        sa.Column("top_p", sa.Double(), nullable=True),
        sa.Column("top_k", sa.BigInteger(), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=True),
        sa.Column("stop_sequences", sa.Text(), nullable=True),
        sa.Column("response_id", sa.Text(), nullable=True),
        sa.Column("finish_reasons", sa.Text(), nullable=True),
        sa.Column("error_type", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cached_input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("ttft_s", sa.Double(), nullable=True),
        sa.Column("server_ttft_s", sa.Double(), nullable=True),
        sa.Column("tpot_s", sa.Double(), nullable=True),
        sa.Column("queue_s", sa.Double(), nullable=True),
        sa.Column("prefill_s", sa.Double(), nullable=True),
        sa.Column("decode_s", sa.Double(), nullable=True),
        sa.Column("stream_chunks", sa.BigInteger(), nullable=True),
        sa.Column("stream_max_gap_s", sa.Double(), nullable=True),
        sa.Column("stream_p99_gap_s", sa.Double(), nullable=True),
        sa.Column("rollout", sa.Text(), nullable=True),
        sa.Column("arm", sa.String(), nullable=True),
        sa.Column("cohort", sa.Text(), nullable=True),
        sa.Column("prompt_id", sa.Text(), nullable=True),
        sa.Column("repeat", sa.BigInteger(), nullable=True),
        sa.Column("route", sa.Text(), nullable=True),
        sa.Column("dims", sa.Text(), nullable=True),
        sa.Column("retries", sa.BigInteger(), nullable=True),
        sa.Column("fallback", sa.Boolean(), nullable=True),
        sa.Column("mirrored", sa.Boolean(), nullable=True),
        sa.Column("concurrency", sa.BigInteger(), nullable=True),
        sa.Column("spec_method", sa.Text(), nullable=True),
        sa.Column("spec_draft_model", sa.Text(), nullable=True),
        sa.Column("spec_num_speculative_tokens", sa.BigInteger(), nullable=True),
        sa.Column("spec_lossless", sa.Boolean(), nullable=True),
        sa.Column("spec_source", sa.Text(), nullable=True),
        sa.Column("spec_steps", sa.BigInteger(), nullable=True),
        sa.Column("spec_draft_tokens", sa.BigInteger(), nullable=True),
        sa.Column("spec_accepted_tokens", sa.BigInteger(), nullable=True),
        sa.Column("spec_draft_tokens_per_pos", sa.Text(), nullable=True),
        sa.Column("spec_accepted_tokens_per_pos", sa.Text(), nullable=True),
        sa.Column("spec_acceptance_histogram", sa.Text(), nullable=True),
        sa.Column("service_name", sa.Text(), nullable=True),
        sa.Column("service_version", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("quality", sa.Text(), nullable=True),
        sa.Column("counts_usable", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_generation"),
        postgresql_partition_by="RANGE (id)",
    )
    op.create_index("ix_generation_rollout_id", "generation", ["rollout", "id"])
    op.create_index(
        "ix_generation_rollout_prompt_id_repeat_arm",
        "generation",
        ["rollout", "prompt_id", "repeat", "arm"],
    )


def _create_old() -> None:
    op.create_table(
        "span",
        sa.Column("id", _ID, autoincrement=False, nullable=False),
        sa.Column("trace_id", sa.LargeBinary(), nullable=False),
        sa.Column("span_id", sa.LargeBinary(), nullable=False),
        sa.Column("parent_span_id", sa.LargeBinary(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("end_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("status_message", sa.Text(), nullable=True),
        sa.Column("scope_name", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_span"),
        sa.UniqueConstraint("trace_id", "span_id", name="uq_span_trace_id_span_id"),
    )
    op.create_table(
        "content",
        sa.Column("id", _ID, autoincrement=False, nullable=False),
        sa.Column("attributes", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["id"], ["span.id"], name="fk_content_id"),
        sa.PrimaryKeyConstraint("id", name="pk_content"),
    )
    op.create_table(
        "span_payload",
        sa.Column("id", _ID, autoincrement=False, nullable=False),
        sa.Column("attributes", sa.LargeBinary(), nullable=False),
        sa.Column("resource", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["id"], ["span.id"], name="fk_span_payload_id"),
        sa.PrimaryKeyConstraint("id", name="pk_span_payload"),
    )
    _create_old_generation()


def _create_old_generation() -> None:
    op.create_table(
        "generation",
        sa.Column("id", _ID, autoincrement=False, nullable=False),
        sa.Column("trace_id", sa.LargeBinary(), nullable=False),
        sa.Column("span_id", sa.LargeBinary(), nullable=False),
        sa.Column("start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("end_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("dialect", sa.String(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=True),
        sa.Column("request_model", sa.Text(), nullable=True),
        sa.Column("response_model", sa.Text(), nullable=True),
        sa.Column("max_tokens", sa.BigInteger(), nullable=True),
        sa.Column("temperature", sa.Double(), nullable=True),
        sa.Column("top_p", sa.Double(), nullable=True),
        sa.Column("top_k", sa.BigInteger(), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=True),
        sa.Column("stop_sequences", sa.Text(), nullable=True),
        sa.Column("response_id", sa.Text(), nullable=True),
        sa.Column("finish_reasons", sa.Text(), nullable=True),
        sa.Column("error_type", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cached_input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("ttft_s", sa.Double(), nullable=True),
        sa.Column("server_ttft_s", sa.Double(), nullable=True),
        sa.Column("tpot_s", sa.Double(), nullable=True),
        sa.Column("queue_s", sa.Double(), nullable=True),
        sa.Column("stream_chunks", sa.BigInteger(), nullable=True),
        sa.Column("stream_max_gap_s", sa.Double(), nullable=True),
        sa.Column("stream_p99_gap_s", sa.Double(), nullable=True),
        sa.Column("rollout", sa.Text(), nullable=True),
        sa.Column("arm", sa.String(), nullable=True),
        sa.Column("cohort", sa.Text(), nullable=True),
        sa.Column("prompt_id", sa.Text(), nullable=True),
        sa.Column("repeat", sa.BigInteger(), nullable=True),
        sa.Column("route", sa.Text(), nullable=True),
        sa.Column("dims", sa.Text(), nullable=False),
        sa.Column("retries", sa.BigInteger(), nullable=True),
        sa.Column("fallback", sa.Boolean(), nullable=True),
        sa.Column("mirrored", sa.Boolean(), nullable=True),
        sa.Column("concurrency", sa.BigInteger(), nullable=True),
        sa.Column("spec_method", sa.Text(), nullable=True),
        sa.Column("spec_draft_model", sa.Text(), nullable=True),
        sa.Column("spec_num_speculative_tokens", sa.BigInteger(), nullable=True),
        sa.Column("spec_lossless", sa.Boolean(), nullable=True),
        sa.Column("spec_source", sa.Text(), nullable=True),
        sa.Column("spec_steps", sa.BigInteger(), nullable=True),
        sa.Column("spec_draft_tokens", sa.BigInteger(), nullable=True),
        sa.Column("spec_accepted_tokens", sa.BigInteger(), nullable=True),
        sa.Column("spec_draft_tokens_per_pos", sa.Text(), nullable=True),
        sa.Column("spec_accepted_tokens_per_pos", sa.Text(), nullable=True),
        sa.Column("spec_acceptance_histogram", sa.Text(), nullable=True),
        sa.Column("service_name", sa.Text(), nullable=True),
        sa.Column("service_version", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("quality", sa.Text(), nullable=False),
        sa.Column("counts_usable", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["id"], ["span.id"], name="fk_generation_id"),
        sa.PrimaryKeyConstraint("id", name="pk_generation"),
    )
    op.create_index("ix_generation_rollout_id", "generation", ["rollout", "id"], unique=False)
    op.create_index(
        "ix_generation_rollout_prompt_id_repeat_arm",
        "generation",
        ["rollout", "prompt_id", "repeat", "arm"],
        unique=False,
    )


def _copy_up(connection: sa.Connection) -> None:
    today = partitions.first_id_of(time.time())
    # One that came down from this schema still tells the days by its ids.
    first = connection.scalar(sa.text("SELECT min(id) FROM old_span")) or 0
    offset = 0 if partitions.day_of(first) else today
    for day in _days(connection, offset):
        partitions.ensure(connection, partitions.first_id_of_day(day))
    new = _tables(connection, ("resource", "span", "span_key", "content", "generation", *_SUMS))
    resources: set[int] = set()
    for rows in _old_rows(connection):
        spans, texts, found = [], [], []
        for row in rows:
            resource = resource_pb2.Resource(
                attributes=map(KeyValue.FromString, _key_values(row["resource"]))
            ).SerializeToString()
            resource_id = digests.id_of(resource)
            if resource_id not in resources:
                resources.add(resource_id)
                found.append({"id": resource_id, "attributes": payload.pack_resource(resource)})
            spans.append(
                {name: row[name] for name in _SPAN_COLUMNS}
                | {
                    "id": row["id"] + offset,
                    "resource_id": resource_id,
                    "payload": payload.pack([(_span(row["attributes"]), b"")], DROP)[0],
                }
            )
            if row["text"] is not None:
                texts.append({"id": row["id"] + offset, "attributes": _packed(row["text"])})
        keys = [{name: span[name] for name in ("trace_id", "span_id", "id")} for span in spans]
        _insert(connection, new["resource"], found)
        _insert(connection, new["span"], spans)
        _insert(connection, new["span_key"], keys)
        _insert(connection, new["content"], texts)
    old_generation = sa.Table("old_generation", sa.MetaData(), autoload_with=connection)
    statement = sa.select(old_generation).order_by(old_generation.c.id)
    for part in connection.execute(statement).mappings().partitions(_ROWS_AT_ONCE):
        _copy_generations(connection, new, [_new_generation(row, offset) for row in part])


def _days(connection: sa.Connection, offset: int) -> Iterator[int]:
    """Yield the days of the old spans, once they are given their new ids."""
    next_id = sa.text("SELECT min(id) FROM old_span WHERE id >= :first")
    first = 0
    while (id_ := connection.scalar(next_id, {"first": first})) is not None:
        day = partitions.day_of(id_ + offset)
        yield day
        first = partitions.first_id_of_day(day + 1) - offset


_SUMS = ("series", "rollup_delta")
_SPAN_COLUMNS = (
    "trace_id",
    "span_id",
    "parent_span_id",
    "name",
    "kind",
    "start_unix_ns",
    "end_unix_ns",
    "status",
    "status_message",
    "scope_name",
)


def _old_rows(connection: sa.Connection) -> Iterator[Sequence[sa.RowMapping]]:
    statement = sa.text(
        "SELECT s.*, p.attributes, p.resource, c.attributes AS text FROM old_span s "
        "JOIN old_span_payload p ON p.id = s.id LEFT JOIN old_content c ON c.id = s.id "
        "ORDER BY s.id"
    )
    yield from connection.execute(statement).mappings().partitions(_ROWS_AT_ONCE)


def _new_generation(row: sa.RowMapping, offset: int) -> dict[str, Any]:
    """Return the row without its NULLs, as rollups want it."""
    values = {name: value for name, value in row.items() if value is not None}
    for name, empty in (("dims", "{}"), ("quality", "[]")):
        if values[name] == empty:
            del values[name]
    return values | {"id": row["id"] + offset}


def _copy_generations(
    connection: sa.Connection, new: dict[str, sa.Table], rows: Sequence[dict[str, Any]]
) -> None:
    table = new["generation"]
    _insert(connection, table, [{c.name: row.get(c.name) for c in table.columns} for row in rows])
    added = deltas.of_rows(rows)
    known = set(connection.scalars(sa.select(new["series"].c.id)))
    series = {delta.series.id: delta.series for delta in added}
    _insert(
        connection,
        new["series"],
        [{"id": id_, **one._asdict()} for id_, one in series.items() if id_ not in known],
    )
    _insert(
        connection,
        new["rollup_delta"],
        [
            {
                "series_id": delta.series.id,
                "start_unix_s": delta.start_unix_s,
                **delta.packed._asdict(),
            }
            for delta in added
        ],
    )


def _copy_down(connection: sa.Connection) -> None:
    new = _tables(connection, ("span", "span_payload", "content", "generation"))
    statement = sa.text(
        "SELECT s.*, r.attributes AS resource, c.attributes AS text FROM old_span s "
        "JOIN old_resource r ON r.id = s.resource_id LEFT JOIN old_content c ON c.id = s.id "
        "ORDER BY s.id"
    )
    for rows in connection.execute(statement).mappings().partitions(_ROWS_AT_ONCE):
        _insert(
            connection,
            new["span"],
            [{"id": row["id"]} | {name: row[name] for name in _SPAN_COLUMNS} for row in rows],
        )
        _insert(
            connection,
            new["span_payload"],
            [
                {
                    "id": row["id"],
                    "attributes": _json(payload.unpack(row["payload"]).attributes),
                    "resource": _json(payload.unpack_resource(row["resource"])),
                }
                for row in rows
            ],
        )
        _insert(
            connection,
            new["content"],
            [
                {
                    "id": row["id"],
                    "attributes": _json(payload.read_text(payload.unpack_text(row["text"]))),
                }
                for row in rows
                if row["text"] is not None
            ],
        )
    table = new["generation"]
    old_generation = sa.Table("old_generation", sa.MetaData(), autoload_with=connection)
    statement = sa.select(old_generation).order_by(old_generation.c.id)
    for part in connection.execute(statement).mappings().partitions(_ROWS_AT_ONCE):
        _insert(
            connection,
            table,
            [
                {c.name: row[c.name] for c in table.columns}
                | {"dims": row["dims"] or "{}", "quality": row["quality"] or "[]"}
                for row in part
            ],
        )


def _tables(connection: sa.Connection, names: Sequence[str]) -> dict[str, sa.Table]:
    metadata = sa.MetaData()
    return {name: sa.Table(name, metadata, autoload_with=connection) for name in names}


def _insert(connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(sa.insert(table), rows)


def _key_values(blob: bytes) -> list[bytes]:
    attributes = load_attributes(zlib.decompress(blob))
    return [write_attribute(key, value).SerializeToString() for key, value in attributes.items()]


def _span(blob: bytes) -> bytes:
    return wire.Span(attributes=_key_values(blob)).SerializeToString()  # type: ignore[no-any-return]


def _packed(blob: bytes) -> bytes:
    return payload.pack_text(_span(blob))


def _json(attributes: dict[str, Any]) -> bytes:
    return zlib.compress(dump_attributes(attributes), 1)
