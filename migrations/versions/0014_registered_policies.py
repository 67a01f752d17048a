"""Policies registered for rollouts, who posted a verdict, and the scope `judge`."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_KEY = sa.table("api_key", sa.column("id", sa.String), sa.column("scopes", sa.Text))


def upgrade() -> None:
    op.create_table(
        "registered_policy",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("policy_name", sa.Text(), nullable=False),
        sa.Column("policy_hash", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("before_first_pair", sa.Boolean(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=True),
        sa.Column("time_unix_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_registered_policy"),
    )
    op.create_index("ix_registered_policy_rollout_id", "registered_policy", ["rollout", "id"])
    op.add_column("verdict", sa.Column("who", sa.Text(), nullable=True))
    op.add_column("verdict", sa.Column("key_id", sa.String(), nullable=True))
    op.add_column("watch", sa.Column("key_id", sa.String(), nullable=True))
    op.add_column(
        "ramp_step",
        sa.Column("arrived_up_to", sa.BigInteger(), nullable=False, server_default="0"),
    )
    _change_scopes(_with_judge)


def downgrade() -> None:
    _change_scopes(lambda scopes: scopes - {"judge"})
    op.drop_column("ramp_step", "arrived_up_to")
    op.drop_column("watch", "key_id")
    op.drop_column("verdict", "key_id")
    op.drop_column("verdict", "who")
    op.drop_index("ix_registered_policy_rollout_id", "registered_policy")
    op.drop_table("registered_policy")


def _with_judge(scopes: set[str]) -> set[str]:
    """Give `judge` to keys that could post and read, or do all else; not to senders of spans."""
    judges = {"ingest", "read"} <= scopes or "admin" in scopes
    return scopes | {"judge"} if judges else scopes


def _change_scopes(change) -> None:  # type: ignore[no-untyped-def]
    connection = op.get_bind()
    for id_, text in connection.execute(sa.select(_KEY.c.id, _KEY.c.scopes)).all():
        scopes = json.dumps(sorted(change(set(json.loads(text)))))
        connection.execute(sa.update(_KEY).where(_KEY.c.id == id_).values(scopes=scopes))
