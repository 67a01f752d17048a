"""The schema of the first release.

The tables are spelled out: `collector.store.tables` says what they are now, and a migration must
not change with it.
"""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# SQLite makes only a column of the exact type INTEGER an alias of the row id.
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_BY_DAY = "RANGE (id)"


def upgrade() -> None:
    """Create every table, and the random key of redaction."""
    _spans()
    _rollups_and_scores()
    _releases()
    _upkeep()
    if _on_postgresql():
        # Rows lie in the order of arrival, so the smallest of indexes finds those of a day.
        op.create_index("ix_span_key_id", "span_key", ["id"], postgresql_using="brin")
        # They are compressed already.
        op.execute("ALTER TABLE content ALTER COLUMN attributes SET STORAGE EXTERNAL")


def _on_postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def _spans() -> None:
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
        sa.Column("parent_span_id", sa.LargeBinary()),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("end_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("status_message", sa.Text()),
        sa.Column("scope_name", sa.Text()),
        sa.Column("resource_id", sa.BigInteger(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_span"),
        postgresql_partition_by=_BY_DAY,
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
        postgresql_partition_by=_BY_DAY,
    )
    op.create_table(
        "generation",
        sa.Column("id", _ID, autoincrement=False, nullable=False),
        sa.Column("trace_id", sa.LargeBinary(), nullable=False),
        sa.Column("span_id", sa.LargeBinary(), nullable=False),
        sa.Column("start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("end_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("dialect", sa.String(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text()),
        sa.Column("request_model", sa.Text()),
        sa.Column("response_model", sa.Text()),
        sa.Column("streamed", sa.Boolean()),
        sa.Column("max_tokens", sa.BigInteger()),
        sa.Column("temperature", sa.Double()),
        sa.Column("top_p", sa.Double()),
        sa.Column("top_k", sa.BigInteger()),
        sa.Column("seed", sa.BigInteger()),
        sa.Column("sampler", sa.Text()),
        sa.Column("seeded_draws", sa.Text()),
        sa.Column("stop_sequences", sa.Text()),
        sa.Column("response_id", sa.Text()),
        sa.Column("finish_reasons", sa.Text()),
        sa.Column("error_type", sa.Text()),
        sa.Column("input_tokens", sa.BigInteger()),
        sa.Column("output_tokens", sa.BigInteger()),
        sa.Column("reasoning_tokens", sa.BigInteger()),
        sa.Column("cached_input_tokens", sa.BigInteger()),
        sa.Column("ttft_s", sa.Double()),
        sa.Column("ttfo_s", sa.Double()),
        sa.Column("server_ttft_s", sa.Double()),
        sa.Column("tpot_s", sa.Double()),
        sa.Column("queue_s", sa.Double()),
        sa.Column("prefill_s", sa.Double()),
        sa.Column("decode_s", sa.Double()),
        sa.Column("stream_chunks", sa.BigInteger()),
        sa.Column("stream_max_gap_s", sa.Double()),
        sa.Column("stream_p99_gap_s", sa.Double()),
        sa.Column("rollout", sa.Text()),
        sa.Column("arm", sa.String()),
        sa.Column("cohort", sa.Text()),
        sa.Column("prompt_id", sa.Text()),
        sa.Column("repeat", sa.BigInteger()),
        sa.Column("route", sa.Text()),
        sa.Column("launch", sa.Text()),
        sa.Column("look", sa.BigInteger()),
        sa.Column("looks", sa.Text()),
        sa.Column("conversation_id", sa.Text()),
        sa.Column("turn", sa.BigInteger()),
        sa.Column("own_history", sa.Boolean()),
        sa.Column("sentinel", sa.Text()),
        sa.Column("sentinel_after", sa.Text()),
        sa.Column("sentinel_answer", sa.Text()),
        sa.Column("retries", sa.BigInteger()),
        sa.Column("fallback", sa.Boolean()),
        sa.Column("mirrored", sa.Boolean()),
        sa.Column("concurrency", sa.BigInteger()),
        sa.Column("client_lag_s", sa.Double()),
        sa.Column("service_name", sa.Text()),
        sa.Column("service_version", sa.Text()),
        sa.Column("fingerprint", sa.Text()),
        sa.Column("workload", sa.Text()),
        sa.Column("change", sa.Text()),
        sa.Column("price", sa.Text()),
        sa.Column("engine_version", sa.Text()),
        sa.Column("spec_method", sa.Text()),
        sa.Column("spec_draft_model", sa.Text()),
        sa.Column("spec_num_speculative_tokens", sa.BigInteger()),
        sa.Column("spec_lossless", sa.Boolean()),
        sa.Column("spec_source", sa.Text()),
        sa.Column("spec_steps", sa.BigInteger()),
        sa.Column("spec_draft_tokens", sa.BigInteger()),
        sa.Column("spec_accepted_tokens", sa.BigInteger()),
        sa.Column("spec_draft_tokens_per_pos", sa.Text()),
        sa.Column("spec_accepted_tokens_per_pos", sa.Text()),
        sa.Column("spec_acceptance_histogram", sa.Text()),
        sa.Column("dims", sa.Text()),
        sa.Column("quality", sa.Text()),
        sa.Column("counts_usable", sa.Boolean(), nullable=False),
        sa.Column("carries", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_generation"),
        postgresql_partition_by=_BY_DAY,
    )
    op.create_index("ix_generation_rollout_id", "generation", ["rollout", "id"])
    op.create_index(
        "ix_generation_sentinel",
        "generation",
        ["rollout", "id"],
        sqlite_where=sa.text("sentinel IS NOT NULL"),
        postgresql_where=sa.text("sentinel IS NOT NULL"),
    )
    op.create_index(
        "ix_generation_rollout_prompt_id_repeat_arm",
        "generation",
        ["rollout", "prompt_id", "repeat", "arm"],
    )
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
    op.create_index("ix_engine_span_arrived_unix_s", "engine_span", ["arrived_unix_s"])
    op.create_index("ix_engine_span_trace_id", "engine_span", ["trace_id"])
    op.create_table(
        "waiting_score",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("response_id", sa.Text(), nullable=False),
        sa.Column("arrived_unix_s", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_waiting_score"),
    )
    op.create_index("ix_waiting_score_arrived_unix_s", "waiting_score", ["arrived_unix_s"])
    op.create_index("ix_waiting_score_response_id", "waiting_score", ["response_id"])


def _rollups_and_scores() -> None:
    op.create_table(
        "series",
        sa.Column("id", _ID, autoincrement=False, nullable=False),
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("arm", sa.String()),
        sa.Column("cohort", sa.Text()),
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
    for name in ("rollup_minute", "rollup_hour"):
        op.create_table(
            name,
            sa.Column("series_id", sa.BigInteger(), autoincrement=False, nullable=False),
            sa.Column("start_unix_s", sa.BigInteger(), autoincrement=False, nullable=False),
            sa.Column("first_start_unix_ns", sa.BigInteger(), nullable=False),
            sa.Column("last_end_unix_ns", sa.BigInteger(), nullable=False),
            sa.Column("counts", sa.LargeBinary(), nullable=False),
            sa.Column("moments", sa.LargeBinary(), nullable=False),
            sa.Column("bins", sa.LargeBinary(), nullable=False),
            sa.PrimaryKeyConstraint("series_id", "start_unix_s", name=f"pk_{name}"),
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
    op.create_table(
        "score",
        sa.Column("trace_id", sa.LargeBinary(), nullable=False),
        sa.Column("span_id", sa.LargeBinary(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("evaluator", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("value", sa.Double()),
        sa.Column("label", sa.Text()),
        sa.Column("explanation", sa.Text()),
        sa.Column("unscored_reason", sa.Text()),
        sa.Column("latency_s", sa.Double()),
        sa.Column("cost_usd", sa.Double()),
        sa.Column("spans", sa.Text()),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("first_revision", sa.BigInteger(), nullable=False),
        sa.Column("key_id", sa.String()),
        sa.PrimaryKeyConstraint(
            "trace_id", "span_id", "metric", "evaluator", "version", name="pk_score"
        ),
        sa.UniqueConstraint("revision", name="uq_score_revision"),
    )
    op.create_table(
        "regression",
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("prompt_id", sa.Text(), nullable=False),
        sa.Column("repeat", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("of_metric", sa.String(), nullable=False),
        sa.Column("cohort", sa.Text()),
        sa.Column("baseline", sa.Double(), nullable=False),
        sa.Column("candidate", sa.Double(), nullable=False),
        sa.Column("change", sa.Double(), nullable=False),
        sa.Column("first_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("rollout", "prompt_id", "repeat", "metric", name="pk_regression"),
    )
    op.create_index("ix_regression_first_id", "regression", ["first_id"])
    op.create_index(
        "ix_regression_rollout_metric_change_prompt_id_repeat",
        "regression",
        ["rollout", "metric", "change", "prompt_id", "repeat"],
    )
    op.create_index(
        "ix_regression_rollout_metric_cohort_change_prompt_id_repeat",
        "regression",
        ["rollout", "metric", "cohort", "change", "prompt_id", "repeat"],
    )


def _releases() -> None:
    op.create_table(
        "verdict",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("posted_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("who", sa.Text()),
        sa.Column("key_id", sa.String()),
        sa.PrimaryKeyConstraint("id", name="pk_verdict"),
    )
    op.create_index("ix_verdict_posted_unix_ns", "verdict", ["posted_unix_ns"])
    op.create_index("ix_verdict_rollout_posted_unix_ns", "verdict", ["rollout", "posted_unix_ns"])
    op.create_table(
        "engine_sample",
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("time_unix_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("series", sa.LargeBinary(), nullable=False),
        sa.Column("service_name", sa.Text()),
        sa.Column("instance", sa.Text()),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("unit", sa.Text()),
        sa.Column("attributes", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("metric", "time_unix_ns", "series", name="pk_engine_sample"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_engine_sample_metric_service_name_time_unix_ns_series",
        "engine_sample",
        ["metric", "service_name", "time_unix_ns", "series"],
    )
    op.create_table(
        "feedback",
        sa.Column("trace_id", sa.LargeBinary(), nullable=False),
        sa.Column("span_id", sa.LargeBinary(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("comment", sa.Text()),
        sa.Column("time_unix_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("trace_id", "span_id", "kind", "source", name="pk_feedback"),
    )
    op.create_table(
        "switch_event",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("time_unix_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_switch_event"),
    )
    op.create_index("ix_switch_event_rollout_id", "switch_event", ["rollout", "id"])
    op.create_table(
        "ramp_step",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("percent", sa.Double(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("verdict", sa.String()),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("time_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("arrived_up_to", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ramp_step"),
    )
    op.create_index("ix_ramp_step_rollout_id", "ramp_step", ["rollout", "id"])
    op.create_table(
        "registered_policy",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("policy_name", sa.Text(), nullable=False),
        sa.Column("policy_hash", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("before_first_pair", sa.Boolean(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("key_id", sa.String()),
        sa.Column("time_unix_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_registered_policy"),
    )
    op.create_index("ix_registered_policy_rollout_id", "registered_policy", ["rollout", "id"])
    op.create_table(
        "watch",
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("policy_hash", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("updated_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("key_id", sa.String()),
        sa.PrimaryKeyConstraint("rollout", "policy_hash", name="pk_watch"),
    )


def _upkeep() -> None:
    op.create_table(
        "upkeep_lease",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("taken_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_unix_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_upkeep_lease"),
    )
    op.create_table(
        "evaluation",
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("evaluators", sa.String(), nullable=False),
        sa.Column("up_to", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("rollout", "evaluators", name="pk_evaluation"),
    )
    op.create_table(
        "evaluation_lease",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("evaluators", sa.String(), nullable=False),
        sa.Column("after", sa.BigInteger(), nullable=False),
        sa.Column("up_to", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("taken_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_unix_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_evaluation_lease"),
    )
    op.create_index(
        "ix_evaluation_lease_rollout_evaluators", "evaluation_lease", ["rollout", "evaluators"]
    )
    op.create_table(
        "key_bucket",
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("full_unix_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", name="pk_key_bucket"),
        # On PostgreSQL a crash may empty it, so that no request waits for the disk.
        prefixes=["UNLOGGED"] if _on_postgresql() else [],
    )
    op.create_table(
        "api_key",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("project", sa.Text()),
        sa.Column("rate_per_s", sa.Double()),
        sa.Column("created_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_unix_ns", sa.BigInteger()),
        sa.Column("revoked_unix_ns", sa.BigInteger()),
        sa.Column("last_used_unix_ns", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
    )
    op.create_table(
        "notification",
        sa.Column("id", _ID, nullable=False, autoincrement=True),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("time_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notification"),
    )
    op.create_table(
        "notification_target",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("sent_up_to", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("due_unix_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_notification_target"),
    )
    op.create_table(
        "evidence_flow",
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("stopped", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("rollout", name="pk_evidence_flow"),
    )
    secret = op.create_table(
        "secret",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("value", sa.LargeBinary(), nullable=False),
    )
    op.bulk_insert(secret, [{"name": "redaction", "value": secrets.token_bytes(32)}])
