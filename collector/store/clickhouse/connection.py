"""A relational connection that has statements on ClickHouse's tables carried out there."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final

import pyarrow as pa
from sqlalchemy import (
    Dialect,
    Engine,
    Executable,
    LargeBinary,
    Result,
    ScalarResult,
    Select,
    Table,
)
from sqlalchemy.engine import IteratorResult
from sqlalchemy.engine.result import SimpleResultMetaData
from sqlalchemy.sql import visitors

from collector.store import tables
from collector.store.clickhouse import marks
from collector.store.clickhouse.server import ClickHouse
from collector.store.reader import Reader, StoreConnection

TABLES: Final = frozenset(
    {
        tables.resource,
        tables.span,
        tables.span_key,
        tables.content,
        tables.generation,
        tables.score,
        tables.feedback,
        tables.rollup_delta,
        tables.rollup_minute,
        tables.rollup_hour,
    }
)
"""What ClickHouse holds, if there is one."""


class AnalyticsConnection(StoreConnection):
    """Reads of `TABLES` go to ClickHouse, and see what counted when the first of them began.

    All else is the relational database's, the transaction and the locks too. No statement may be of
    both.
    """

    def __init__(
        self, engine: Engine, reader_of: Callable[[Any], Reader], clickhouse: ClickHouse
    ) -> None:  # Any: itself
        super().__init__(engine, reader_of)
        self.clickhouse = clickhouse
        self._marks: marks.Marks | None = None

    @property
    def marks(self) -> marks.Marks:
        """What counts in this transaction."""
        if self._marks is None:
            self._marks = marks.read(self)
        return self._marks

    def forget_marks(self) -> None:
        """Have the marks read anew: this transaction has moved one."""
        self._marks = None

    def ask(self, sql: str, *, final: bool = True) -> pa.Table:
        """Return the answer of a query of ClickHouse's own, of what counts.

        Of rows that replace each other all, where it is not `final`.
        """
        settings = {"additional_table_filters": self.marks.filters, "final": int(final)}
        return self.clickhouse.query(sql, settings)

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:  # Any: each of its column's type
        """Yield the rows of a query of ClickHouse's own, of what counts."""
        answer = self.ask(sql)
        yield from zip(*(column.to_pylist() for column in answer.columns), strict=True)

    # Any: SQLAlchemy's own, narrower overloads have no common signature.
    def execute(self, statement: Executable, *args: Any, **kwargs: Any) -> Any:
        """Carry the statement out where its tables are."""
        if isinstance(statement, Select) and _is_analytic(statement):
            return self._ask(statement)
        return super().execute(statement, *args, **kwargs)

    def scalar(self, statement: Executable, *args: Any, **kwargs: Any) -> Any:
        """Return the first column of the first row; None if there is none."""
        if isinstance(statement, Select) and _is_analytic(statement):
            return self._ask(statement).scalar()
        return super().scalar(statement, *args, **kwargs)

    def scalars(self, statement: Executable, *args: Any, **kwargs: Any) -> ScalarResult[Any]:
        """Return the first column."""
        if isinstance(statement, Select) and _is_analytic(statement):
            return self._ask(statement).scalars()
        return super().scalars(statement, *args, **kwargs)

    def _ask(self, statement: Select[Any]) -> Result[Any]:
        answer = self.ask(to_sql(statement))
        wanted = list(statement.selected_columns)
        values = [
            _values(column, isinstance(of.type, LargeBinary))
            for of, column in zip(wanted, answer.columns, strict=True)
        ]
        names = [str(column.key) for column in wanted]
        return IteratorResult(SimpleResultMetaData(names), iter(zip(*values, strict=True)))


def to_sql(statement: Select[Any]) -> str:
    """Return the statement in ClickHouse's SQL, values included."""
    return str(statement.compile(dialect=_dialect(), compile_kwargs={"literal_binds": True}))


def _is_analytic(statement: Select[Any]) -> bool:
    return any(
        isinstance(element, Table) and element in TABLES for element in visitors.iterate(statement)
    )


def _values(column: pa.ChunkedArray, raw: bool) -> Sequence[Any]:  # noqa: FBT001  # Any: its type
    if not raw and pa.types.is_binary(column.type):
        column = column.cast(pa.string())
    found: Sequence[Any] = column.to_pylist()
    return found


class _Bytes(LargeBinary):
    """Bytes as ClickHouse reads them in a statement."""

    def literal_processor(self, dialect: Dialect) -> Any:  # noqa: ARG002  # Any: a function
        """Return what writes a value."""
        return lambda value: f"unhex('{value.hex()}')"


@cache
def _dialect() -> Dialect:
    from clickhouse_connect.cc_sqlalchemy.dialect import ClickHouseDialect  # noqa: PLC0415  # extra

    dialect = ClickHouseDialect()
    dialect.colspecs = {**dialect.colspecs, LargeBinary: _Bytes}
    return dialect
