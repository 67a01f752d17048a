"""Feedback of users, switches of rollouts, and a way to the keys of a day on PostgreSQL."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "feedback",
        sa.Column("trace_id", sa.LargeBinary(), nullable=False),
        sa.Column("span_id", sa.LargeBinary(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("time_unix_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("trace_id", "span_id", "kind", "source", name="pk_feedback"),
    )
    op.create_table(
        "switch_event",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("time_unix_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_switch_event"),
    )
    op.create_index("ix_switch_event_rollout_id", "switch_event", ["rollout", "id"])
    if op.get_bind().dialect.name == "postgresql":
        op.create_index("ix_span_key_id", "span_key", ["id"], postgresql_using="brin")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.drop_index("ix_span_key_id", "span_key")
    op.drop_index("ix_switch_event_rollout_id", "switch_event")
    op.drop_table("switch_event")
    op.drop_table("feedback")
