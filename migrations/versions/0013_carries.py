"""What a generation carries for evaluators, so that a gate without its text can tell."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("generation", sa.Column("carries", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("generation", "carries")
