"""Reads that differ between databases: one reader class per kind of database."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, Engine, Row, Select

from collector.contract import PairKey
from collector.store.rollups.state import Packed


class Range(NamedTuple):
    """Start times in [start, end); None means no bound."""

    start_unix_s: int | None
    end_unix_s: int | None


class RollupQuery(NamedTuple):
    """Which rollups to merge, and how."""

    series: Iterable[int]
    """Series ids."""
    hours: Sequence[Range]
    """Ranges of whole hours."""
    minutes: Sequence[Range]
    step_s: int | None = None
    """Return one entry per step of this length; None: one entry for the whole query."""
    at_most: int | None = None
    """The most rows that may be read; None: no limit."""
    measured: bool = True
    """Whether to read moments and histograms too, not only counts."""


class Merged(NamedTuple):
    """The state of one series, in one time step if the query has steps."""

    series_id: int
    start_unix_s: int
    packed: Packed


class TooManyRowsError(Exception):
    """A read of rollups needs more rows than `RollupQuery.at_most`."""


class TableSize(NamedTuple):
    """The size of one table."""

    rows: int
    estimated: bool
    """Whether `rows` is PostgreSQL's estimate from its last ANALYZE instead of a count."""
    size_bytes: int | None
    """Size including indexes; None if the database cannot report it."""


class Reader(ABC):
    """Reads in the transaction of its connection."""

    generations_at_least: ClassVar[int] = 0
    """Fewest generations to process per step when counting pairs."""
    ids_a_query: ClassVar[int] = 1000

    @abstractmethod
    def completed_pairs(self, after: int, up_to: int | None, floor: int) -> dict[str, int]:
        """Count, by rollout, the pairs that a generation in (after, up_to] completed.

        Generations with ids below `floor` count as deleted.
        """

    @abstractmethod
    def broken_pairs(self, floor: int, before: int, last: int) -> dict[str, int]:
        """Count, by rollout, the pairs up to id `last` that use a generation in [floor, before)."""

    @abstractmethod
    def rows_of_pairs(
        self, statement: Select[Any], after: PairKey | None, up_to: int | None
    ) -> Generator[Sequence[Row[Any]], None, None]:
        """Yield each pair's rows; a row begins with prompt id and repeat.

        The statement must order by both and select a column `id`; rows with ids above `up_to` are
        left out. Close the generator if you do not read it to the end.
        """

    @abstractmethod
    def rows_of_scores(
        self, statement: Select[Any], rollout: str, first_id: int, limit: int
    ) -> Sequence[Row[Any]]:
        """Return the rows of a statement on a rollout's generations and their scores.

        Returns at least `limit` rows unless fewer exist, and maybe a few more. Only generations
        with ids from `first_id` on are read.
        """

    @abstractmethod
    def near(self, trace_id: Column[Any], traces: Select[Any]) -> list[ColumnElement[bool]]:
        """Return extra join conditions that restrict a table to the traces being joined."""

    @abstractmethod
    def newest_revision(self) -> int:
        """Return the revision of the latest score post; 0 if there is none."""

    @abstractmethod
    def merged(self, query: RollupQuery) -> Iterable[Merged]:
        """Return the rollups of the series, merged over all ranges.

        Raises `TooManyRowsError` if more than `at_most` rows have to be read.
        """

    @abstractmethod
    def pending_deltas(self) -> int:
        """Return approximately how many rollup deltas wait to be folded.

        On PostgreSQL failed commits leave gaps in the ids, so the number may be too large.
        """

    @abstractmethod
    def table_sizes(self, names: Iterable[str]) -> dict[str, TableSize]:
        """Return the sizes of these tables, by name."""


class StoreConnection(Connection):
    """A connection with the reader of its database."""

    def __init__(self, engine: Engine, reader_of: Callable[[Any], Reader]) -> None:  # Any: itself
        super().__init__(engine)
        self.reader = reader_of(self)
