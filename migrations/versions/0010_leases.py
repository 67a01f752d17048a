"""What several collectors share: who does the upkeep, who scores what, how often a key was used."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
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
        # On PostgreSQL a crash may empty it, and no request waits for the disk.
        prefixes=["UNLOGGED"] if op.get_bind().dialect.name == "postgresql" else [],
    )


def downgrade() -> None:
    op.drop_table("key_bucket")
    op.drop_index("ix_evaluation_lease_rollout_evaluators", "evaluation_lease")
    op.drop_table("evaluation_lease")
    op.drop_table("evaluation")
    op.drop_table("upkeep_lease")
