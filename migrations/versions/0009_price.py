"""The price of the route that answered a generation, and the version of its engine."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("generation", sa.Column("price", sa.Text()))
    op.add_column("generation", sa.Column("engine_version", sa.Text()))
