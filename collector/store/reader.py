"""Reads that databases answer differently: one reader for each kind of database."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, Engine, Row, Select

from collector.contract import PairKey
from collector.store.rollups.state import Packed


class Range(NamedTuple):
    """Starts in [start, end); None is no bound."""

    start_unix_s: int | None
    end_unix_s: int | None


class RollupQuery(NamedTuple):
    """Which rollups to merge, and how."""

    series: Iterable[int]
    """Ids."""
    hours: Sequence[Range]
    """Of whole hours."""
    minutes: Sequence[Range]
    step_s: int | None = None
    """Each step of so many seconds has an entry of its own; None: one for all."""
    at_most: int | None = None
    """Rows that may be read."""
    measured: bool = True
    """Whether what was measured is wanted, beside counts."""


class Merged(NamedTuple):
    """The state of one series, in one step of time if steps were asked for."""

    series_id: int
    start_unix_s: int
    packed: Packed


class TooManyRowsError(Exception):
    """A read of rollups would take more rows than it may."""


class TableSize(NamedTuple):
    """The size of one table."""

    rows: int
    estimated: bool
    """PostgreSQL's own estimate, as of its last ANALYZE, instead of a count."""
    size_bytes: int | None
    """With its indexes; None if the database cannot tell."""


class Reader(ABC):
    """Answers in the transaction of its connection."""

    generations_at_least: ClassVar[int] = 0
    """Generations that counting pairs looks at together, however few it is asked for."""
    ids_a_query: ClassVar[int] = 1000

    @abstractmethod
    def completed_pairs(self, after: int, up_to: int | None, floor: int) -> dict[str, int]:
        """Count, by rollout, the pairs that a generation in (after, up_to] made complete.

        Generations before the id `floor` do not exist any more.
        """

    @abstractmethod
    def broken_pairs(self, floor: int, before: int, last: int) -> dict[str, int]:
        """Count, by rollout, the pairs up to `last` that need a generation of [floor, before)."""

    @abstractmethod
    def rows_of_pairs(
        self, statement: Select[Any], after: PairKey | None, up_to: int | None
    ) -> Generator[Sequence[Row[Any]], None, None]:
        """Yield the rows of one pair after the other; they begin with prompt id and repeat.

        The statement orders by both and selects a column `id`, of which rows above `up_to` are left
        out. Whoever does not read to the end must close it.
        """

    @abstractmethod
    def rows_of_scores(
        self, statement: Select[Any], rollout: str, first_id: int, limit: int
    ) -> Sequence[Row[Any]]:
        """Return rows of a statement on a rollout's generations and their scores.

        There are `limit` of them or a few more, unless there are no more. The generations have
        `first_id` or a higher id.
        """

    @abstractmethod
    def near(self, trace_id: Column[Any], traces: Select[Any]) -> list[ColumnElement[bool]]:
        """Return conditions that a join needs beside its own: the traces that may be joined."""

    @abstractmethod
    def newest_revision(self) -> int:
        """Return the revision of the last post of a score; 0 if there is none."""

    @abstractmethod
    def merged(self, query: RollupQuery) -> Iterable[Merged]:
        """Return the rollups of the series over all the ranges.

        Raises `TooManyRowsError` if more than `at_most` rows have to be read.
        """

    @abstractmethod
    def pending_deltas(self) -> int:
        """Return about how many additions of commits wait to be folded.

        Commits that failed leave gaps on PostgreSQL, so it may be too many.
        """

    @abstractmethod
    def table_sizes(self, names: Iterable[str]) -> dict[str, TableSize]:
        """Return the sizes of these tables, by name."""


class StoreConnection(Connection):
    """A connection that has the reader of its database."""

    def __init__(self, engine: Engine, reader_of: Callable[[Any], Reader]) -> None:  # Any: itself
        super().__init__(engine)
        self.reader = reader_of(self)
