"""Marks: which rows of ClickHouse count, as the relational database says when a write commits.

A batch is written to ClickHouse under ids beyond the mark, where nobody sees it; then the mark is
moved, together with all that the relational database holds of the batch. A writer that fails or
dies between leaves rows beyond the mark: the next one begins above them, and notes the hole.
"""

from typing import Final, NamedTuple

from sqlalchemy import Connection, select

from collector.store import progress
from collector.store.tables import progress as p

COMMITTED: Final = "clickhouse_committed"
"""The last id that counts."""
FOLDED: Final = "clickhouse_folded"
"""The last id that minutes hold."""
HOURS: Final = "clickhouse_hours"
"""The last id that hours hold."""
_HOLE: Final = "clickhouse_hole_"

BY_ID: Final = ("span", "span_key", "content", "generation", "rollup_delta")
"""The tables whose rows have an id."""
FIRST_WRITTEN: Final = ("span_key", "rollup_delta")
"""Of those: one of them has whatever id any has, for a writer writes nothing else before."""


class Hole(NamedTuple):
    """Ids below the mark that do not count, the last included."""

    first: int
    last: int


class Marks(NamedTuple):
    """The rows that count at one moment."""

    committed: int = 0
    folded: int = 0
    hours: int = 0
    holes: tuple[Hole, ...] = ()

    @property
    def visible(self) -> str:
        """The condition on a row's id."""
        without = [f"NOT (id BETWEEN {hole.first} AND {hole.last})" for hole in self.holes]
        return " AND ".join([f"id <= {self.committed}", *without])

    def shows(self, id_: int) -> bool:
        """Say the same of one row's id."""
        return id_ <= self.committed and not any(
            hole.first <= id_ <= hole.last for hole in self.holes
        )

    @property
    def filters(self) -> str:
        """The value of ClickHouse's setting `additional_table_filters`."""
        return "{" + ", ".join(f"'{name}': '{self.visible}'" for name in BY_ID) + "}"


def read(connection: Connection) -> Marks:
    """Return the marks as the connection's transaction sees them."""
    reached = {row.name: row.id for row in connection.execute(select(p))}
    holes = (
        Hole(int(name.removeprefix(_HOLE)), last)
        for name, last in reached.items()
        if name.startswith(_HOLE)
    )
    return Marks(
        reached.get(COMMITTED, 0),
        reached.get(FOLDED, 0),
        reached.get(HOURS, 0),
        tuple(sorted(holes)),
    )


def leave_out(connection: Connection, hole: Hole) -> None:
    """Note a hole."""
    progress.reach(connection, f"{_HOLE}{hole.first}", hole.last)
