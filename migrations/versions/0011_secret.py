"""Secrets of the store: the key of redaction."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the table, and a random key."""
    table = op.create_table(
        "secret",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("value", sa.LargeBinary(), nullable=False),
    )
    op.bulk_insert(table, [{"name": "redaction", "value": secrets.token_bytes(32)}])
