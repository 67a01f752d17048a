"""The hash of a table: of its values alone, whatever machine or library holds them."""

import hashlib
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def data_hash(table: pa.Table) -> str:
    """Return the SHA-256 of a table in its order of rows: columns by name, then their values.

    Columns in which no value stands are left out, so that a metric that is scored later changes
    nothing.

    A column is its name, a letter for its kind, a byte a row that says where a value stands, and
    the values, little-endian: integers and floats of 64 bits, bytes for booleans; strings and lists
    as their lengths and then their contents. Chunks, order of columns, widths of integers and what
    lies under a null do not matter.
    """
    digest = hashlib.sha256()
    for name in sorted(table.column_names):
        column = table[name].combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        if column.null_count == len(column):
            continue
        digest.update(f"{len(name.encode())}:{name}:{len(column)}:".encode())
        _add(digest, column)
    return digest.hexdigest()


def _add(digest: _Digest, column: Any) -> None:  # Any: pyarrow is untyped
    kind = column.type
    digest.update(np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), "u1").tobytes())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        digest.update(b"l" + _numbers(pc.list_value_length(column), pa.int64(), "<i8"))
        _add(digest, column.flatten())
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        digest.update(b"s" + _numbers(pc.binary_length(column), pa.int64(), "<i8"))
        digest.update("".join(pc.fill_null(column, "").to_pylist()).encode())
    elif pa.types.is_boolean(kind):
        digest.update(b"b" + _numbers(column, pa.uint8(), "u1"))
    elif pa.types.is_floating(kind):
        digest.update(b"f" + _numbers(column, pa.float64(), "<f8"))
    elif pa.types.is_integer(kind):
        digest.update(b"i" + _numbers(column, pa.int64(), "<i8"))
    elif pa.types.is_null(kind):
        digest.update(b"n")
    else:
        raise TypeError(f"wanted numbers, strings, booleans or lists of them, got {kind}")


def _numbers(column: Any, kind: Any, layout: str) -> bytes:
    values = pc.fill_null(column.cast(kind), 0).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=layout).tobytes()


def pairs_hash(table: pa.Table) -> str:
    """Return the hash of a table of pairs, whatever the order of its rows."""
    ordered = table.sort_by([("prompt_id", "ascending"), ("repeat", "ascending")])
    return data_hash(ordered.combine_chunks())
