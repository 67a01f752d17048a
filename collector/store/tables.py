"""The tables: what is stored, and under which keys.

One span is one row of `span`; `span_payload`, `content` and `generation` share its `id`. Ids are
given out in the order of arrival, so that these tables grow at their end; the one random index is
the unique (trace_id, span_id). Text stands in `content` alone: deleting it leaves every number.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite makes only a column of the exact type INTEGER an alias of the row id.
_ID = BigInteger().with_variant(Integer(), "sqlite")

span = Table(
    "span",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=False),
    Column("trace_id", LargeBinary, nullable=False),
    Column("span_id", LargeBinary, nullable=False),
    Column("parent_span_id", LargeBinary),
    Column("name", Text, nullable=False),
    Column("kind", String, nullable=False),
    Column("start_unix_ns", BigInteger, nullable=False),
    Column("end_unix_ns", BigInteger, nullable=False),
    Column("status", String, nullable=False),
    Column("status_message", Text),
    Column("scope_name", Text),
    UniqueConstraint("trace_id", "span_id"),
)

span_payload = Table(
    "span_payload",
    metadata,
    Column("id", _ID, ForeignKey("span.id"), primary_key=True, autoincrement=False),
    Column("attributes", LargeBinary, nullable=False),  # every attribute but the text ones
    Column("resource", LargeBinary, nullable=False),
)

content = Table(
    "content",
    metadata,
    Column("id", _ID, ForeignKey("span.id"), primary_key=True, autoincrement=False),
    Column("attributes", LargeBinary, nullable=False),
)

generation = Table(
    "generation",
    metadata,
    Column("id", _ID, ForeignKey("span.id"), primary_key=True, autoincrement=False),
    Column("trace_id", LargeBinary, nullable=False),
    Column("span_id", LargeBinary, nullable=False),
    Column("start_unix_ns", BigInteger, nullable=False),
    Column("end_unix_ns", BigInteger, nullable=False),
    Column("dialect", String, nullable=False),
    Column("operation", Text, nullable=False),
    Column("provider", Text),
    Column("request_model", Text),
    Column("response_model", Text),
    Column("max_tokens", BigInteger),
    Column("temperature", Double),
    Column("top_p", Double),
    Column("top_k", BigInteger),
    Column("seed", BigInteger),
    Column("stop_sequences", Text),  # JSON
    Column("response_id", Text),
    Column("finish_reasons", Text),  # JSON
    Column("error_type", Text),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cached_input_tokens", BigInteger),
    Column("ttft_s", Double),
    Column("server_ttft_s", Double),
    Column("tpot_s", Double),
    Column("queue_s", Double),
    Column("stream_chunks", BigInteger),
    Column("stream_max_gap_s", Double),
    Column("stream_p99_gap_s", Double),
    Column("rollout", Text),
    Column("arm", String),
    Column("cohort", Text),
    Column("prompt_id", Text),
    Column("repeat", BigInteger),
    Column("route", Text),
    Column("dims", Text, nullable=False),  # JSON
    Column("retries", BigInteger),
    Column("fallback", Boolean),
    Column("mirrored", Boolean),
    Column("concurrency", BigInteger),
    Column("spec_method", Text),
    Column("spec_draft_model", Text),
    Column("spec_num_speculative_tokens", BigInteger),
    Column("spec_lossless", Boolean),
    Column("spec_source", Text),
    Column("spec_steps", BigInteger),
    Column("spec_draft_tokens", BigInteger),
    Column("spec_accepted_tokens", BigInteger),
    Column("spec_draft_tokens_per_pos", Text),  # JSON
    Column("spec_accepted_tokens_per_pos", Text),  # JSON
    Column("spec_acceptance_histogram", Text),  # JSON
    Column("service_name", Text),
    Column("service_version", Text),
    Column("fingerprint", Text),
    Column("quality", Text, nullable=False),  # JSON
    Column("counts_usable", Boolean, nullable=False),
    Index(None, "rollout", "prompt_id", "repeat", "arm"),
    Index(None, "rollout", "id"),
)

score = Table(
    "score",
    metadata,
    # No reference to span: a score may arrive before the span that it judges.
    Column("trace_id", LargeBinary, primary_key=True),
    Column("span_id", LargeBinary, primary_key=True),
    Column("metric", String, primary_key=True),
    Column("evaluator", String, primary_key=True),
    Column("version", String, primary_key=True),
    Column("value", Double),
    Column("label", Text),
    Column("explanation", Text),
    Column("unscored_reason", Text),
    Column("latency_s", Double),
    Column("revision", BigInteger, nullable=False),  # grows with every post: the latest wins
    UniqueConstraint("revision"),
)

verdict = Table(
    "verdict",
    metadata,
    Column("id", String, primary_key=True),
    Column("rollout", Text, nullable=False),
    Column("posted_unix_ns", BigInteger, nullable=False),
    Column("document", Text, nullable=False),  # JSON
    Index(None, "posted_unix_ns"),
    Index(None, "rollout", "posted_unix_ns"),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),  # of the secret, which is not kept
    Column("scopes", Text, nullable=False),  # JSON
    Column("project", Text),
    Column("rate_per_s", Double),
    Column("created_unix_ns", BigInteger, nullable=False),
    Column("expires_unix_ns", BigInteger),
    Column("revoked_unix_ns", BigInteger),
    Column("last_used_unix_ns", BigInteger),
)
