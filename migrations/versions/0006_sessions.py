"""The session of a generation, its turn, and whose answers its history holds."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("generation", sa.Column("conversation_id", sa.Text()))
    op.add_column("generation", sa.Column("turn", sa.BigInteger()))
    op.add_column("generation", sa.Column("own_history", sa.Boolean()))
