"""What a generation carries for evaluators, and of which workload it is, for the gate."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("workload", "carries"):
        op.add_column("generation", sa.Column(name, sa.Text(), nullable=True))


def downgrade() -> None:
    for name in ("carries", "workload"):
        op.drop_column("generation", name)
