"""The looks that a run declared, and the first that judges each pair."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("generation", sa.Column("look", sa.BigInteger()))
    op.add_column("generation", sa.Column("looks", sa.Text()))
