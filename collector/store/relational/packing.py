"""Rows packed into bytes in the format of PostgreSQL's binary COPY."""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
)

__all__ = ["PACKED_KINDS", "kinds_of", "pack", "pack_sparse", "type_of"]

try:
    from collector.store._rows import pack, pack_named
except ImportError:  # there was no compiler when this was installed

    def pack(
        rows: list[tuple[Any, ...]],  # noqa: ARG001  # as the compiled one
        kinds: str,  # noqa: ARG001
        /,
    ) -> bytes | None:
        """Return None: the caller falls back to the driver."""
        return None

    def pack_named(
        rows: list[dict[str, Any]],  # noqa: ARG001  # as the compiled one
        names: tuple[str, ...],  # noqa: ARG001
        kinds: str,  # noqa: ARG001
        /,
    ) -> tuple[bytes, tuple[str, ...]] | None:
        """Return None: the caller falls back to the driver."""
        return None


_POSTGRES_TYPES: Mapping[type[Any], str] = {
    BigInteger: "int8",
    Integer: "int4",
    Double: "float8",
    Boolean: "bool",
    LargeBinary: "bytea",
    Text: "text",
    String: "varchar",
}


PACKED_KINDS: Mapping[str, str] = {
    "int8": "q",
    "int4": "i",
    "float8": "d",
    "bool": "b",
    "bytea": "y",
    "text": "t",
    "varchar": "t",
}
"""The letter that `pack` uses for each PostgreSQL type."""


def type_of(column: Column[Any]) -> str:
    """Return PostgreSQL's name for the column's type."""
    return _POSTGRES_TYPES[type(column.type)]


@lru_cache(maxsize=64)
def kinds_of(table: Table, columns: tuple[str, ...]) -> str:
    """Return the letters of `PACKED_KINDS` for the columns."""
    return "".join(PACKED_KINDS[type_of(table.c[column])] for column in columns)


def pack_sparse(table: Table, rows: list[dict[str, Any]]) -> tuple[bytes, tuple[str, ...]] | None:
    """Return the packed rows and the columns they use, in the table's order; None if impossible."""
    names = _names_of(table)
    return pack_named(rows, names, kinds_of(table, names))


@cache
def _names_of(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns)
