"""Scores keep the id of the API key that posted them."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; scores that are there name no key."""
    op.add_column("score", sa.Column("key_id", sa.String()))
