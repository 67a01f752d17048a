"""Persistent progress of background work, by name."""

from typing import Final

from sqlalchemy import Connection, delete, insert, select

from collector.store.tables import progress as p

PAIRS: Final = "pair_count"
"""The last generation id whose pairs are counted."""
JUDGED: Final = "regression_score"
"""The last score revision processed for regressions."""
JUDGED_GENERATIONS: Final = "regression_generation"
"""The last generation id checked for scores stored before it."""
RETAINED_FROM: Final = "retained_from"
"""The first id that retention has not deleted; 0 if it never ran."""
DELETED_START: Final = "deleted_start_unix_ns"
"""The latest start time of a generation that retention has deleted."""
MINUTES_FROM: Final = "minutes_from_unix_s"
"""The first minute that retention has not deleted."""


def read(connection: Connection, name: str) -> int:
    """Return the progress of the work; 0 if it never ran."""
    return connection.scalar(select(p.c.id).where(p.c.name == name)) or 0


def reach(connection: Connection, name: str, reached: int) -> None:
    """Store the progress of the work."""
    connection.execute(delete(p).where(p.c.name == name))
    connection.execute(insert(p).values(name=name, id=reached))
