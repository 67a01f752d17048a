"""A table of columns."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import nanoarrow as na
import numpy as np
from nanoarrow.ipc import StreamWriter
from numpy.typing import NDArray

from collector.columns import arrow
from collector.columns.column import Column, concat


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns of equal length by name, and metadata; other libraries read it as Arrow.

    `pyarrow.table(t)` and `polars.DataFrame(t)` give their tables of it.
    """

    columns: Mapping[str, Column]
    metadata: Mapping[bytes, bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, source: Any) -> Self:  # Any: bytes, a file, or another library's table
        """Read bytes or a file in Arrow's IPC format, or another library's Arrow table.

        Raises `ArrowError`, and `TypeError` for other columns than numbers, strings, booleans and
        lists of them.
        """
        return cls(*arrow.read(source))

    def to_ipc(self) -> bytes:
        """Return the table in Arrow's IPC stream format; equal tables give equal bytes."""
        sink = io.BytesIO()
        with StreamWriter.from_writable(sink) as writer:
            writer.write_stream(arrow.written(self.columns, self.metadata))
        return sink.getvalue()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:  # Any: capsules
        """Export the table by Arrow's PyCapsule interface."""
        stream = na.c_array_stream(arrow.written(self.columns, self.metadata))
        return stream.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> Column:
        """Return a column."""
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        """Return whether the table has a column."""
        return name in self.columns

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return the rows at these indices, in their order."""
        return replace(self, columns={name: one.take(rows) for name, one in self.columns.items()})

    def with_columns(self, columns: Mapping[str, Column]) -> Self:
        """Return the table with columns replaced or appended."""
        return replace(self, columns={**self.columns, **columns})

    def without(self, names: Sequence[str]) -> Self:
        """Return the table without these columns."""
        kept = {name: one for name, one in self.columns.items() if name not in names}
        return replace(self, columns=kept)

    def with_metadata(self, metadata: Mapping[bytes, bytes]) -> Self:
        """Return the table with its metadata replaced."""
        return replace(self, metadata=metadata)


def joined(tables: Sequence[Table]) -> Table:
    """Return the rows of one or more tables after each other, without metadata.

    A column that some lack has no values in their rows. Raises `TypeError` if kinds differ.
    """
    names = dict.fromkeys(name for table in tables for name in table.columns)
    return Table({name: concat([_or_nulls(table, name) for table in tables]) for name in names})


def _or_nulls(table: Table, name: str) -> Column:
    return table[name] if name in table else Column.nulls(len(table))
