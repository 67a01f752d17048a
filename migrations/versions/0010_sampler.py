"""The sampler of a generation."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the column; nothing is known of earlier generations."""
    op.add_column("generation", sa.Column("sampler", sa.Text()))
