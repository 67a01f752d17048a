"""The load generator's lag, for the gate's check that a slow client is not taken for an engine."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("generation", sa.Column("client_lag_s", sa.Double(), nullable=True))


def downgrade() -> None:
    op.drop_column("generation", "client_lag_s")
