"""A relational connection that routes statements on ClickHouse's tables to ClickHouse."""

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
from collector.store.clickhouse import watermarks
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
"""The tables in ClickHouse, if it is used."""


class AnalyticsConnection(StoreConnection):
    """Sends reads of `TABLES` to ClickHouse; they see the rows visible when the first one began.

    Everything else, including the transaction and locks, is the relational database's. A statement
    must not use tables of both.
    """

    def __init__(
        self, engine: Engine, reader_of: Callable[[Any], Reader], clickhouse: ClickHouse
    ) -> None:  # Any: itself
        super().__init__(engine, reader_of)
        self.clickhouse = clickhouse
        self._watermarks: watermarks.Watermarks | None = None

    @property
    def watermarks(self) -> watermarks.Watermarks:
        """The watermarks of the rows visible in this transaction."""
        if self._watermarks is None:
            self._watermarks = watermarks.read(self)
        return self._watermarks

    def forget_watermarks(self) -> None:
        """Read the watermarks again on the next use: call it after this transaction moved one."""
        self._watermarks = None

    def query(self, sql: str, *, final: bool = True) -> pa.Table:
        """Return the result of a query in ClickHouse's SQL, over visible rows only.

        Without `final`, rows that were replaced by newer ones are included.
        """
        settings = {"additional_table_filters": self.watermarks.filters, "final": int(final)}
        return self.clickhouse.query(sql, settings)

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:  # Any: each of its column's type
        """Yield the rows of a query in ClickHouse's SQL, over visible rows only."""
        answer = self.query(sql)
        yield from zip(*(column.to_pylist() for column in answer.columns), strict=True)

    # Any: SQLAlchemy's narrower overloads have no common signature.
    def execute(self, statement: Executable, *args: Any, **kwargs: Any) -> Any:
        """Execute the statement in the database that has its tables."""
        if isinstance(statement, Select) and _is_analytic(statement):
            return self._query(statement)
        return super().execute(statement, *args, **kwargs)

    def scalar(self, statement: Executable, *args: Any, **kwargs: Any) -> Any:
        """Return the first column of the first row; None if there are no rows."""
        if isinstance(statement, Select) and _is_analytic(statement):
            return self._query(statement).scalar()
        return super().scalar(statement, *args, **kwargs)

    def scalars(self, statement: Executable, *args: Any, **kwargs: Any) -> ScalarResult[Any]:
        """Return the values of the first column."""
        if isinstance(statement, Select) and _is_analytic(statement):
            return self._query(statement).scalars()
        return super().scalars(statement, *args, **kwargs)

    def _query(self, statement: Select[Any]) -> Result[Any]:
        answer = self.query(to_sql(statement))
        wanted = list(statement.selected_columns)
        values = [
            _values(column, isinstance(of.type, LargeBinary))
            for of, column in zip(wanted, answer.columns, strict=True)
        ]
        names = [str(column.key) for column in wanted]
        return IteratorResult(SimpleResultMetaData(names), iter(zip(*values, strict=True)))


def to_sql(statement: Select[Any]) -> str:
    """Return the statement in ClickHouse's SQL, with literal values."""
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
    """Bytes as literals in ClickHouse's SQL."""

    def literal_processor(self, dialect: Dialect) -> Any:  # noqa: ARG002  # Any: a function
        """Return the function that writes a value as a literal."""
        return lambda value: f"unhex('{value.hex()}')"


@cache
def _dialect() -> Dialect:
    from clickhouse_connect.cc_sqlalchemy.dialect import ClickHouseDialect  # noqa: PLC0415  # extra

    dialect = ClickHouseDialect()
    dialect.colspecs = {**dialect.colspecs, LargeBinary: _Bytes}
    return dialect
