"""Whether the evidence of rollouts that are served flows, for the notification that it stopped."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the table, empty: a rollout is followed from its next generation on."""
    op.create_table(
        "evidence_flow",
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("stopped", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("rollout", name="pk_evidence_flow"),
    )
