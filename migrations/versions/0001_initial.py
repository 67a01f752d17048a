"""The first schema: spans, generations, scores, verdicts.

The tables are spelled out, so that later changes to `collector.store.tables` do not rewrite
history.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "score",
        sa.Column("trace_id", sa.LargeBinary(), nullable=False),
        sa.Column("span_id", sa.LargeBinary(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("evaluator", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("explanation", sa.Text(), nullable=True),
        sa.Column("unscored_reason", sa.Text(), nullable=True),
        sa.Column("latency_s", sa.Double(), nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "trace_id", "span_id", "metric", "evaluator", "version", name=op.f("pk_score")
        ),
        sa.UniqueConstraint("revision", name=op.f("uq_score_revision")),
    )
    op.create_table(
        "span",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
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
        sa.PrimaryKeyConstraint("id", name=op.f("pk_span")),
        sa.UniqueConstraint("trace_id", "span_id", name=op.f("uq_span_trace_id_span_id")),
    )
    op.create_table(
        "verdict",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("posted_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verdict")),
    )
    op.create_index(op.f("ix_verdict_posted_unix_ns"), "verdict", ["posted_unix_ns"], unique=False)
    op.create_index(
        op.f("ix_verdict_rollout_posted_unix_ns"),
        "verdict",
        ["rollout", "posted_unix_ns"],
        unique=False,
    )
    op.create_table(
        "content",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("attributes", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["id"], ["span.id"], name=op.f("fk_content_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_content")),
    )
    op.create_table(
        "generation",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
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
        sa.ForeignKeyConstraint(["id"], ["span.id"], name=op.f("fk_generation_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_generation")),
    )
    op.create_index(op.f("ix_generation_rollout_id"), "generation", ["rollout", "id"], unique=False)
    op.create_index(
        op.f("ix_generation_rollout_prompt_id_repeat_arm"),
        "generation",
        ["rollout", "prompt_id", "repeat", "arm"],
        unique=False,
    )
    op.create_table(
        "span_payload",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("attributes", sa.LargeBinary(), nullable=False),
        sa.Column("resource", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["id"], ["span.id"], name=op.f("fk_span_payload_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_span_payload")),
    )


def downgrade() -> None:
    op.drop_table("span_payload")
    op.drop_index(op.f("ix_generation_rollout_prompt_id_repeat_arm"), table_name="generation")
    op.drop_index(op.f("ix_generation_rollout_id"), table_name="generation")
    op.drop_table("generation")
    op.drop_table("content")
    op.drop_index(op.f("ix_verdict_rollout_posted_unix_ns"), table_name="verdict")
    op.drop_index(op.f("ix_verdict_posted_unix_ns"), table_name="verdict")
    op.drop_table("verdict")
    op.drop_table("span")
    op.drop_table("score")
