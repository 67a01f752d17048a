"""Columns read from Arrow, and written as Arrow."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import nanoarrow as na
import numpy as np
from nanoarrow.ipc import InputStream
from numpy.typing import NDArray

from collector.columns.column import Column, Kind, concat

_KINDS: Final = {
    **dict.fromkeys("cCsSiIlL", Kind.INT),
    **dict.fromkeys("efg", Kind.FLOAT),
    **dict.fromkeys("uU", Kind.STRING),
    **dict.fromkeys(("+l", "+L"), Kind.LIST),
    "b": Kind.BOOL,
    "n": Kind.NULL,
}
"""Kinds by the formats of Arrow's C data interface."""
_TYPES: Final = {
    Kind.NULL: na.null(),
    Kind.BOOL: na.bool_(),
    Kind.INT: na.int64(),
    Kind.FLOAT: na.float64(),
    Kind.STRING: na.string(),
}
_Arrow = Any  # nanoarrow is untyped


class ArrowError(ValueError):
    """Data are no Arrow stream."""


class Read(NamedTuple):
    """The contents of a stream."""

    columns: dict[str, Column]
    metadata: dict[bytes, bytes]


def read(source: _Arrow) -> Read:
    """Read bytes or a file in Arrow's IPC format, or an object with `__arrow_c_stream__`.

    Raises `ArrowError`, and `TypeError` for columns of other kinds than `Kind` has.
    """
    given = source if hasattr(source, "__arrow_c_stream__") else InputStream.from_readable(source)
    try:
        with na.c_array_stream(given) as stream:
            schema, batches = stream.get_schema(), list(stream)
    except RuntimeError as exc:
        raise ArrowError(str(exc)) from exc
    columns = {
        field.name: concat(
            [_read(batch.child(place)) for batch in batches] or [_read(na.c_array([], field))]
        )
        for place, field in enumerate(schema.children)
    }
    return Read(columns, {} if schema.metadata is None else dict(schema.metadata.items()))


def written(columns: Mapping[str, Column], metadata: Mapping[bytes, bytes]) -> _Arrow:
    """Return the columns as one nanoarrow array of rows; raises `TypeError` for lists of lists."""
    rows = len(next(iter(columns.values()), ()))
    schema = na.c_schema(na.struct({name: _type(one) for name, one in columns.items()}))
    if metadata:
        schema = schema.modify(metadata=metadata)
    children = [_written(one) for one in columns.values()]
    return na.c_array_from_buffers(schema, rows, [None], children=children)


def _read(array: _Arrow) -> Column:
    kind = _KINDS.get(array.schema.format)
    if kind is None:
        raise TypeError(
            "wanted numbers, strings, booleans or lists of them, got the Arrow format "
            f"{array.schema.format}"
        )
    rows = slice(array.offset, array.offset + len(array))
    if kind is Kind.NULL:
        return Column.nulls(len(array))
    buffers = list(array.view().buffers)
    valid = _bits(buffers[0], rows) if array.null_count else np.ones(len(array), dtype=np.bool_)
    if kind is Kind.BOOL:
        return Column(kind, valid, _bits(buffers[1], rows))
    if kind in (Kind.INT, Kind.FLOAT):
        wide = np.int64 if kind is Kind.INT else np.float64
        return Column(kind, valid, np.asarray(buffers[1])[rows].astype(wide, copy=False))
    offsets = np.asarray(buffers[1])[rows.start : rows.stop + 1].astype(np.int64)
    if not len(array):
        offsets = np.zeros(1, dtype=np.int64)
    inside = slice(offsets[0], offsets[-1])
    if kind is Kind.LIST:
        items = _read(array.child(0)).take(np.arange(inside.start, inside.stop))
        return _without_hidden(Column(kind, valid, items, offsets - offsets[0]))
    data = np.frombuffer(buffers[2], dtype=np.uint8)[inside]
    return _without_hidden(Column(kind, valid, data, offsets - offsets[0]))


def _without_hidden(column: Column) -> Column:
    """Return strings or lists without contents under missing values, which Arrow allows."""
    if column.lengths[~column.valid].any():
        return column.take(np.arange(len(column)))
    return column


def _bits(buffer: _Arrow, rows: slice) -> NDArray[np.bool_]:
    packed = np.frombuffer(buffer, dtype=np.uint8)
    return np.unpackbits(packed, count=rows.stop, bitorder="little")[rows].view(np.bool_)


def _type(column: Column) -> _Arrow:
    if column.kind is Kind.LIST:
        return na.list_(_TYPES[column.items.kind])
    return _TYPES[column.kind]


def _written(column: Column) -> _Arrow:
    if column.kind is Kind.NULL:
        return na.c_array_from_buffers(na.null(), len(column), [])
    known = None if column.valid.all() else np.packbits(column.valid, bitorder="little")
    if column.offsets is None:
        plain = column.kind is Kind.BOOL
        data = np.packbits(column.data, bitorder="little") if plain else column.data
        buffers, children = [known, np.ascontiguousarray(data)], []
    elif column.kind is Kind.LIST:
        buffers, children = [known, _narrow(column.offsets)], [_written(column.items)]
    else:
        buffers, children = [known, _narrow(column.offsets), column.data], []
    return na.c_array_from_buffers(_type(column), len(column), buffers, children=children)


def _narrow(offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return Arrow's offsets; raises `OverflowError` beyond 2 GiB of contents in one column."""
    if offsets[-1] > np.iinfo(np.int32).max:
        raise OverflowError("a column holds more than 2 GiB, which Arrow's strings cannot")
    return offsets.astype(np.int32)
