"""Watermarks: which rows of ClickHouse are visible, stored in the relational database.

A batch is written to ClickHouse with ids beyond the mark, where readers ignore it. Then one
relational transaction moves the mark and writes the batch's other rows. A writer that fails in
between leaves rows beyond the mark: the next writer starts above them and stores the hole.
"""

from typing import Final, NamedTuple

from sqlalchemy import Connection, select

from collector.store import progress
from collector.store.tables import progress as p

COMMITTED: Final = "clickhouse_committed"
"""The last visible id."""
FOLDED: Final = "clickhouse_folded"
"""The last id folded into minutes."""
HOURS: Final = "clickhouse_hours"
"""The last id folded into hours."""
_HOLE: Final = "clickhouse_hole_"

BY_ID: Final = ("span", "span_key", "content", "generation", "rollup_delta")
"""The tables whose visibility is decided by the rows' ids."""
FIRST_WRITTEN: Final = ("span_key", "rollup_delta")
"""The tables of `BY_ID` that a writer writes first: an id in any table is in one of these too."""


class Hole(NamedTuple):
    """A range of invisible ids below the mark, both ends included."""

    first: int
    last: int


class Watermarks(NamedTuple):
    """The watermarks and holes at one moment."""

    committed: int = 0
    folded: int = 0
    hours: int = 0
    holes: tuple[Hole, ...] = ()

    @property
    def visible(self) -> str:
        """The SQL condition on the id of a visible row."""
        without = [f"NOT (id BETWEEN {hole.first} AND {hole.last})" for hole in self.holes]
        return " AND ".join([f"id <= {self.committed}", *without])

    def shows(self, id_: int) -> bool:
        """Return whether the row with this id is visible."""
        return id_ <= self.committed and not any(
            hole.first <= id_ <= hole.last for hole in self.holes
        )

    @property
    def filters(self) -> str:
        """The value of ClickHouse's setting `additional_table_filters`."""
        return "{" + ", ".join(f"'{name}': '{self.visible}'" for name in BY_ID) + "}"


def read(connection: Connection) -> Watermarks:
    """Return the watermarks as the connection's transaction sees them."""
    reached = {row.name: row.id for row in connection.execute(select(p))}
    holes = (
        Hole(int(name.removeprefix(_HOLE)), last)
        for name, last in reached.items()
        if name.startswith(_HOLE)
    )
    return Watermarks(
        reached.get(COMMITTED, 0),
        reached.get(FOLDED, 0),
        reached.get(HOURS, 0),
        tuple(sorted(holes)),
    )


def add_hole(connection: Connection, hole: Hole) -> None:
    """Store a hole."""
    progress.reach(connection, f"{_HOLE}{hole.first}", hole.last)
