"""Pairs whose candidate scored lower, in order."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_INDEXES = (
    ("rollout", "metric", "change", "prompt_id", "repeat"),
    ("rollout", "metric", "cohort", "change", "prompt_id", "repeat"),
    ("first_id",),
)


def upgrade() -> None:
    op.create_table(
        "regression",
        sa.Column("rollout", sa.Text(), nullable=False),
        sa.Column("prompt_id", sa.Text(), nullable=False),
        sa.Column("repeat", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("of_metric", sa.String(), nullable=False),
        sa.Column("cohort", sa.Text(), nullable=True),
        sa.Column("baseline", sa.Double(), nullable=False),
        sa.Column("candidate", sa.Double(), nullable=False),
        sa.Column("change", sa.Double(), nullable=False),
        sa.Column("first_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("rollout", "prompt_id", "repeat", "metric", name="pk_regression"),
    )
    for columns in _INDEXES:
        op.create_index(f"ix_regression_{'_'.join(columns)}", "regression", list(columns))


def downgrade() -> None:
    for columns in _INDEXES:
        op.drop_index(f"ix_regression_{'_'.join(columns)}", "regression")
    op.drop_table("regression")
    # A later upgrade looks through all scores again.
    op.execute("DELETE FROM progress WHERE name LIKE 'regression%'")
