"""API keys."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=True),
        sa.Column("rate_per_s", sa.Double(), nullable=True),
        sa.Column("created_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_unix_ns", sa.BigInteger(), nullable=True),
        sa.Column("revoked_unix_ns", sa.BigInteger(), nullable=True),
        sa.Column("last_used_unix_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
    )


def downgrade() -> None:
    op.drop_table("api_key")
