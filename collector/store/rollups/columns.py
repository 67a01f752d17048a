"""Numbers of many rows as arrays, a column for each name."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

try:
    from collector.store._rows import fill
except ImportError:  # there was no compiler when this was installed
    fill = None  # type: ignore[assignment]  # it is asked for below

Row = dict[str, Any]  # Any: each value has its column's type


class Columns(NamedTuple):
    """Arrays by name, each with a place for every row."""

    integers: Mapping[str, npt.NDArray[np.int64]]
    """0 if there is none, or a value of another type."""
    present: Mapping[str, npt.NDArray[np.bool_]]
    """Whether a row has a value of any type under the name of an integer."""
    numbers: Mapping[str, npt.NDArray[np.float64]]
    """NaN if there is none."""


def read(rows: list[Row], integers: tuple[str, ...], numbers: tuple[str, ...]) -> Columns:
    """Return what the rows have under the names of integers and of numbers.

    A value that is absent has no key; flags are integers.
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
