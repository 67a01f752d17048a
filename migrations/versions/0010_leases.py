"""Leases: which collector does the upkeep, and which evaluator scores which generations."""

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


def downgrade() -> None:
    op.drop_index("ix_evaluation_lease_rollout_evaluators", "evaluation_lease")
    op.drop_table("evaluation_lease")
    op.drop_table("evaluation")
    op.drop_table("upkeep_lease")
