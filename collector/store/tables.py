"""The tables and their keys.

One span is one row of `span`; `generation` shares its `id`, and a few spans' text the `id` of the
first of them. Ids are given out in the order of arrival and begin with the day of it, so that these
tables grow at their end and a day is a range of ids: a partition on PostgreSQL. `span_key` is the
one table that a random key orders. Text stands in `content` alone: deleting it leaves every number.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

from collector.contract.fields import WIRE
from collector.contract.wire_field import Form

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
_BY_DAY = "RANGE (id)"
_COLUMN_TYPES: dict[Form, type[TypeEngine[Any]]] = {
    Form.INTEGER: BigInteger,
    Form.NUMBER: Double,
    Form.BOOLEAN: Boolean,
    Form.ARM: String,
}
"""The columns' types of attributes; of the others it is `Text`."""
REQUIRED = frozenset({"operation"})
"""Attributes that every generation has."""

resource = Table(
    "resource",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=False),  # `store.digests` of the attributes
    Column("attributes", LargeBinary, nullable=False),
)

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
    Column("resource_id", BigInteger, nullable=False),
    Column("payload", LargeBinary, nullable=False),  # attributes but the text ones, events, links
    postgresql_partition_by=_BY_DAY,
)

span_key = Table(
    "span_key",
    metadata,
    Column("trace_id", LargeBinary, primary_key=True),
    Column("span_id", LargeBinary, primary_key=True),
    Column("id", BigInteger, nullable=False),
    # On PostgreSQL alone there is a BRIN index of the ids: rows lie in the order of arrival there,
    # so that the smallest of indexes finds those of a day. On SQLite their spans name them.
    sqlite_with_rowid=False,
)

content = Table(
    "content",
    metadata,
    # That of the first of up to eight spans which share a row: `store.texts`.
    Column("id", _ID, primary_key=True, autoincrement=False),
    Column("attributes", LargeBinary, nullable=False),
    postgresql_partition_by=_BY_DAY,
)


def _wire_columns() -> tuple[Column[Any], ...]:
    """Return a column for each field of a generation that is an attribute; lists are JSON."""
    return tuple(
        Column(name, _COLUMN_TYPES.get(wire.form, Text), nullable=name not in REQUIRED)
        for name, wire in WIRE.items()
    )


generation = Table(
    "generation",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=False),
    Column("trace_id", LargeBinary, nullable=False),
    Column("span_id", LargeBinary, nullable=False),
    Column("start_unix_ns", BigInteger, nullable=False),
    Column("end_unix_ns", BigInteger, nullable=False),
    Column("dialect", String, nullable=False),
    *_wire_columns(),
    Column("dims", Text),  # JSON
    Column("quality", Text),  # JSON
    Column("counts_usable", Boolean, nullable=False),
    Column("carries", Text),  # `store.carried`: which of a reference, passages, a schema
    Index(None, "rollout", "prompt_id", "repeat", "arm"),
    Index(None, "rollout", "id"),
    postgresql_partition_by=_BY_DAY,
)

engine_span = Table(
    "engine_span",
    metadata,
    # What waits for its client's generation: see `store.engine_spans`.
    Column("id", _ID, primary_key=True, autoincrement=False),
    Column("trace_id", LargeBinary, nullable=False),
    Column("span_id", LargeBinary, nullable=False),
    Column("parent_span_id", LargeBinary, nullable=False),
    Column("arrived_unix_s", BigInteger, nullable=False),
    Column("fields", Text, nullable=False),  # JSON
    Index(None, "trace_id"),
    Index(None, "arrived_unix_s"),
)

waiting_score = Table(
    "waiting_score",
    metadata,
    # What waits for the answer that its response id names: see `store.waiting_scores`.
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("response_id", Text, nullable=False),
    Column("arrived_unix_s", BigInteger, nullable=False),
    Column("document", Text, nullable=False),  # JSON
    Index(None, "response_id"),
    Index(None, "arrived_unix_s"),
)

series = Table(
    "series",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=False),  # `store.digests` of the rest
    Column("rollout", Text, nullable=False),
    Column("arm", String),
    Column("cohort", Text),
    Index(None, "rollout"),
)


def _rollup_columns() -> tuple[Column[Any], ...]:
    """Return the columns of `store.rollups.state`."""
    return (
        Column("first_start_unix_ns", BigInteger, nullable=False),
        Column("last_end_unix_ns", BigInteger, nullable=False),
        Column("counts", LargeBinary, nullable=False),
        Column("moments", LargeBinary, nullable=False),
        Column("bins", LargeBinary, nullable=False),
    )


# Written with the spans that they count, folded into minutes and hours later.
rollup_delta = Table(
    "rollup_delta",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("series_id", BigInteger, nullable=False),
    Column("start_unix_s", BigInteger, nullable=False),
    *_rollup_columns(),
    Index(None, "series_id", "start_unix_s"),
)
rollup_minute = Table(
    "rollup_minute",
    metadata,
    Column("series_id", BigInteger, primary_key=True, autoincrement=False),
    Column("start_unix_s", BigInteger, primary_key=True, autoincrement=False),
    *_rollup_columns(),
)
rollup_hour = Table(
    "rollup_hour",
    metadata,
    Column("series_id", BigInteger, primary_key=True, autoincrement=False),
    Column("start_unix_s", BigInteger, primary_key=True, autoincrement=False),
    *_rollup_columns(),
)

# Pairs among the generations up to `progress`, counted as rollups are folded.
pair_count = Table(
    "pair_count",
    metadata,
    Column("rollout", Text, primary_key=True),
    Column("pairs", BigInteger, nullable=False),
)
progress = Table(
    "progress",
    metadata,
    Column("name", String, primary_key=True),
    Column("id", BigInteger, nullable=False),  # how far it has got: `store.progress`
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
    Column("cost_usd", Double),
    Column("spans", Text),  # JSON: [start, end, support] each
    Column("revision", BigInteger, nullable=False),  # grows with every post: the latest wins
    Column("first_revision", BigInteger, nullable=False),  # of its first post: later ones keep it
    Column("key_id", String),
    UniqueConstraint("revision"),
)

# Pairs whose candidate scored lower: `store.regressions`.
regression = Table(
    "regression",
    metadata,
    Column("rollout", Text, primary_key=True),
    Column("prompt_id", Text, primary_key=True),
    Column("repeat", BigInteger, primary_key=True, autoincrement=False),
    Column("metric", String, primary_key=True),  # empty: the one that the pair lost most in
    Column("of_metric", String, nullable=False),
    Column("cohort", Text),
    Column("baseline", Double, nullable=False),
    Column("candidate", Double, nullable=False),
    Column("change", Double, nullable=False),  # candidate - baseline, below 0
    Column("first_id", BigInteger, nullable=False),  # of the side that arrived first
    Index(None, "rollout", "metric", "change", "prompt_id", "repeat"),
    Index(None, "rollout", "metric", "cohort", "change", "prompt_id", "repeat"),
    Index(None, "first_id"),
)

verdict = Table(
    "verdict",
    metadata,
    Column("id", String, primary_key=True),
    Column("rollout", Text, nullable=False),
    Column("posted_unix_ns", BigInteger, nullable=False),
    Column("document", Text, nullable=False),  # JSON
    Column("who", Text),
    Column("key_id", String),
    Index(None, "posted_unix_ns"),
    Index(None, "rollout", "posted_unix_ns"),
)

engine_sample = Table(
    "engine_sample",
    metadata,
    # In the key's order on disk, so that the samples of a metric in a window lie side by side.
    Column("metric", String, primary_key=True),
    Column("time_unix_ns", BigInteger, primary_key=True, autoincrement=False),
    Column("series", LargeBinary, primary_key=True),  # digest of service, instance and attributes
    Column("service_name", Text),
    Column("instance", Text),
    Column("kind", String, nullable=False),
    Column("value", Double, nullable=False),
    Column("unit", Text),
    Column("attributes", Text, nullable=False),  # JSON
    Index(None, "metric", "service_name", "time_unix_ns", "series"),
    sqlite_with_rowid=False,
)

feedback = Table(
    "feedback",
    metadata,
    # No reference to span, as for a score.
    Column("trace_id", LargeBinary, primary_key=True),
    Column("span_id", LargeBinary, primary_key=True),
    Column("kind", String, primary_key=True),
    Column("source", String, primary_key=True),
    Column("comment", Text),
    Column("time_unix_ns", BigInteger, nullable=False),
)

# An audit log: rows are added, never changed; a rollout's newest is its state.
switch_event = Table(
    "switch_event",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("rollout", Text, nullable=False),
    Column("state", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("time_unix_ns", BigInteger, nullable=False),
    Index(None, "rollout", "id"),
)

# An audit log, too: a rollout's newest step is the share that its candidate gets.
ramp_step = Table(
    "ramp_step",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("rollout", Text, nullable=False),
    Column("percent", Double, nullable=False),
    Column("reason", Text, nullable=False),
    Column("verdict", String),  # id of the verdict that it rests on
    Column("who", Text, nullable=False),
    Column("time_unix_ns", BigInteger, nullable=False),
    Column("arrived_up_to", BigInteger, nullable=False),
    Index(None, "rollout", "id"),
)

# An audit log, too: `store.policies` says which of a rollout's rows counts.
registered_policy = Table(
    "registered_policy",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("rollout", Text, nullable=False),
    Column("policy_name", Text, nullable=False),
    Column("policy_hash", String, nullable=False),
    Column("text", Text, nullable=False),  # JSON
    Column("before_first_pair", Boolean, nullable=False),
    Column("who", Text, nullable=False),
    Column("key_id", String),
    Column("time_unix_ns", BigInteger, nullable=False),
    Index(None, "rollout", "id"),
)

# How far `draftgate watch` has got: one row a rollout and policy, replaced whole.
watch = Table(
    "watch",
    metadata,
    Column("rollout", Text, primary_key=True),
    Column("policy_hash", String, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("updated_unix_ns", BigInteger, nullable=False),
    Column("document", Text, nullable=False),  # JSON
    Column("key_id", String),
)

# Which of several collectors does the upkeep, as `store.upkeep_lease` has it.
upkeep_lease = Table(
    "upkeep_lease",
    metadata,
    Column("name", String, primary_key=True),
    Column("holder", String, nullable=False),
    Column("taken_unix_ns", BigInteger, nullable=False),  # by the database's clock, as all of these
    Column("expires_unix_ns", BigInteger, nullable=False),
)

# Up to which generation a rollout was handed out to evaluators, and what of it is not done yet.
evaluation = Table(
    "evaluation",
    metadata,
    Column("rollout", Text, primary_key=True),
    Column("evaluators", String, primary_key=True),  # digest of their metrics, names and versions
    Column("up_to", BigInteger, nullable=False),
)
evaluation_lease = Table(
    "evaluation_lease",
    metadata,
    Column("id", String, primary_key=True),
    Column("rollout", Text, nullable=False),
    Column("evaluators", String, nullable=False),
    Column("after", BigInteger, nullable=False),  # of the rollout's generations, those in between
    Column("up_to", BigInteger, nullable=False),
    Column("worker", Text, nullable=False),
    Column("taken_unix_ns", BigInteger, nullable=False),
    Column("expires_unix_ns", BigInteger, nullable=False),
    Index(None, "rollout", "evaluators"),
)

# How much of a key's rate is used up, where several collectors count it together: PostgreSQL alone.
key_bucket = Table(
    "key_bucket",
    metadata,
    Column("key_id", String, primary_key=True),
    Column("full_unix_us", BigInteger, nullable=False),  # when all of its tokens are back
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
