"""Spans of scores, and what a judgement cost."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("score", sa.Column("cost_usd", sa.Double(), nullable=True))
    op.add_column("score", sa.Column("spans", sa.Text(), nullable=True))


def downgrade() -> None:
    # SQLite drops a column in place since 3.35; Python 3.11 ships a newer one.
    op.drop_column("score", "spans")
    op.drop_column("score", "cost_usd")
