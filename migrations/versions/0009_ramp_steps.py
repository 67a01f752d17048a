"""Steps of ramps: what part of the traffic each rollout's candidate gets."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ramp_step",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("percent", sa.Double(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=True),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("time_unix_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ramp_step"),
    )
    op.create_index("ix_ramp_step_rollout_id", "ramp_step", ["rollout", "id"])


def downgrade() -> None:
    op.drop_index("ix_ramp_step_rollout_id", "ramp_step")
    op.drop_table("ramp_step")
