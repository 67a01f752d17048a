"""Notifications that wait to be sent, and how far each target has got."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the tables, empty: nothing that happened before is sent."""
    op.create_table(
        "notification",
        sa.Column("id", _ID, nullable=False, autoincrement=True),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("time_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notification"),
    )
    op.create_table(
        "notification_target",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("sent_up_to", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("due_unix_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_notification_target"),
    )
