"""Watches of rollouts, and the revision of a score's first post."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "watch",
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("policy_hash", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("updated_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("rollout", "policy_hash", name="pk_watch"),
    )
    op.add_column("score", sa.Column("first_revision", sa.BigInteger(), nullable=True))
    op.execute("UPDATE score SET first_revision = revision")


def downgrade() -> None:
    op.drop_column("score", "first_revision")
    op.drop_table("watch")
