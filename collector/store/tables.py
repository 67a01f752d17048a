"""The tables and their keys.

One span is one row of `span`; `generation` has the same `id`, and the text of up to eight spans is
one row of `content`. Ids are assigned in the order of arrival and start with its day, so that these
tables grow at their end and a day is a range of ids: a partition on PostgreSQL. `span_key` is the
only one of them ordered by a random key. Text is only in `content`: deleting it changes no number.
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
    text,
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

# In SQLite only a column of the exact type INTEGER becomes an alias of the row id.
_ID = BigInteger().with_variant(Integer(), "sqlite")
_BY_DAY = "RANGE (id)"
_COLUMN_TYPES: dict[Form, type[TypeEngine[Any]]] = {
    Form.INTEGER: BigInteger,
    Form.NUMBER: Double,
    Form.BOOLEAN: Boolean,
    Form.ARM: String,
}
"""Column types by the attribute's form; other forms are `Text`."""
REQUIRED = frozenset({"operation"})
"""Fields that every generation has."""

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
    # PostgreSQL also has a BRIN index on the ids, to find the rows of a day: rows are stored in the
    # order of arrival there. SQLite finds them through their spans.
    sqlite_with_rowid=False,
)

content = Table(
    "content",
    metadata,
    # The first of the (up to eight) span ids that share the row: `store.texts`.
    Column("id", _ID, primary_key=True, autoincrement=False),
    Column("attributes", LargeBinary, nullable=False),
    postgresql_partition_by=_BY_DAY,
)


def _wire_columns() -> tuple[Column[Any], ...]:
    """Return a column for each wire attribute of a generation; lists are JSON."""
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
    Index(
        "ix_generation_sentinel",
        "rollout",
        "id",
        sqlite_where=text("sentinel IS NOT NULL"),
        postgresql_where=text("sentinel IS NOT NULL"),
    ),
    postgresql_partition_by=_BY_DAY,
)

engine_span = Table(
    "engine_span",
    metadata,
    # Engine spans that wait for the client's generation: `store.engine_spans`.
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
    # Scores that wait for the generation with their response id: `store.waiting_scores`.
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
    Column("id", _ID, primary_key=True, autoincrement=False),  # `store.digests` of the others
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


# Written in the transaction of the spans that they count; later folded into minutes and hours.
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

# Pairs among the generations up to the id in `progress`; upkeep counts them.
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
    Column("id", BigInteger, nullable=False),  # the position reached: `store.progress`
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
    Column("revision", BigInteger, nullable=False),  # grows with every post: the highest wins
    Column("first_revision", BigInteger, nullable=False),  # of the first post; never changes
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
    Column("metric", String, primary_key=True),  # empty: the pair's largest loss in any metric
    Column("of_metric", String, nullable=False),
    Column("cohort", Text),
    Column("baseline", Double, nullable=False),
    Column("candidate", Double, nullable=False),
    Column("change", Double, nullable=False),  # candidate - baseline, below 0
    Column("first_id", BigInteger, nullable=False),  # the id of the side that arrived first
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
    # Stored in key order, so that the samples of a metric in a time window are adjacent.
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

# An audit log: rows are added, never changed; a rollout's newest row is its state.
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

# An audit log, too: a rollout's newest step is the candidate's share of traffic.
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

# An audit log, too: `store.policies` chooses the row in force.
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

# The state of `draftgate watch`: one row per rollout and policy, replaced whole.
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

# Random keys, made with the table.
secret = Table(
    "secret",
    metadata,
    Column("name", String, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

# Which of several collectors does the upkeep: `store.upkeep_lease`.
upkeep_lease = Table(
    "upkeep_lease",
    metadata,
    Column("name", String, primary_key=True),
    Column("holder", String, nullable=False),
    Column("taken_unix_ns", BigInteger, nullable=False),  # by the database's clock, as below
    Column("expires_unix_ns", BigInteger, nullable=False),
)

# Evaluation leases: the id up to which a rollout's generations were handed out to evaluators, and
# the leased ranges that are not done yet: `store.leases`.
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
    Column("after", BigInteger, nullable=False),  # the lease covers ids in (after, up_to]
    Column("up_to", BigInteger, nullable=False),
    Column("worker", Text, nullable=False),
    Column("taken_unix_ns", BigInteger, nullable=False),
    Column("expires_unix_ns", BigInteger, nullable=False),
    Index(None, "rollout", "evaluators"),
)

# Token buckets of API keys, shared by several collectors: PostgreSQL only, `store.key_rates`.
key_bucket = Table(
    "key_bucket",
    metadata,
    Column("key_id", String, primary_key=True),
    Column("full_unix_us", BigInteger, nullable=False),  # when the bucket will be full again
)

# Notifications that wait for their targets, and each target's place among them.
notification = Table(
    "notification",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("type", String, nullable=False),
    Column("time_unix_ns", BigInteger, nullable=False),
    Column("document", Text, nullable=False),  # JSON
)
notification_target = Table(
    "notification_target",
    metadata,
    Column("name", String, primary_key=True),
    Column("sent_up_to", BigInteger, nullable=False),  # id of a notification
    Column("attempts", BigInteger, nullable=False),  # of the next one, that failed
    Column("due_unix_ns", BigInteger, nullable=False),  # of the next attempt; 0: at once
)

# Served rollouts whose candidate was heard of since: `store.evidence_flow`.
evidence_flow = Table(
    "evidence_flow",
    metadata,
    Column("rollout", Text, primary_key=True),
    Column("stopped", Boolean, nullable=False),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),  # of the secret, which is not stored
    Column("scopes", Text, nullable=False),  # JSON
    Column("project", Text),
    Column("rate_per_s", Double),
    Column("created_unix_ns", BigInteger, nullable=False),
    Column("expires_unix_ns", BigInteger),
    Column("revoked_unix_ns", BigInteger),
    Column("last_used_unix_ns", BigInteger),
)
