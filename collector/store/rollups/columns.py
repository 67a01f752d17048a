"""Numbers of many rows as numpy arrays, one array per column."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

try:
    from collector.store._rows import fill
except ImportError:  # there was no compiler when this was installed
    fill = None  # type: ignore[assignment]  # checked below

Row = dict[str, Any]  # Any: each value has its column's type


class Columns(NamedTuple):
    """Arrays by column name, each with one element per row."""

    integers: Mapping[str, npt.NDArray[np.int64]]
    """0 if the row has no value or one of another type."""
    present: Mapping[str, npt.NDArray[np.bool_]]
    """For each integer column, whether the row has a value of any type."""
    numbers: Mapping[str, npt.NDArray[np.float64]]
    """NaN if the row has no value."""


def read(rows: list[Row], integers: tuple[str, ...], numbers: tuple[str, ...]) -> Columns:
    """Return the rows' values of these integer and number columns.

    A row has no key for an absent value; booleans count as integers.
    """
    values = np.empty((len(rows), len(integers)), np.int64)
    present = np.empty((len(rows), len(integers)), np.bool_)
    measured = np.empty((len(rows), len(numbers)), np.float64)
    compiled = fill is not None and fill(rows, integers, numbers, values, present, measured)
    if rows and not compiled:
        values[:] = [[_integer(row.get(name)) for name in integers] for row in rows]
        present[:] = [[name in row for name in integers] for row in rows]
        measured[:] = [[row.get(name, math.nan) for name in numbers] for row in rows]
    return Columns(
        dict(zip(integers, values.T, strict=True)),
        dict(zip(integers, present.T, strict=True)),
        dict(zip(numbers, measured.T, strict=True)),
    )


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0
