"""Samples of engines' gauges and counters."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "engine_sample",
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("time_unix_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("series", sa.LargeBinary(), nullable=False),
        sa.Column("service_name", sa.Text(), nullable=True),
        sa.Column("instance", sa.Text(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=True),
        sa.Column("attributes", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("metric", "time_unix_ns", "series", name=op.f("pk_engine_sample")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_engine_sample_metric_service_name_time_unix_ns_series"),
        "engine_sample",
        ["metric", "service_name", "time_unix_ns", "series"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_index(
        op.f("ix_engine_sample_metric_service_name_time_unix_ns_series"),
        table_name="engine_sample",
    )
    op.drop_table("engine_sample")
