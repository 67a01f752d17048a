"""The hash of a table's values, independent of machine, library and memory layout."""

import hashlib
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SENTINELS: Final = "sentinels"
"""Key of a table's metadata for the requests of the run's sentinels, as JSON."""


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def data_hash(table: pa.Table) -> str:
    """Return the SHA-256 of a table's columns, sorted by name, with rows in the given order.

    Columns with only nulls are left out, so that a metric that is scored later changes nothing.
    Of the metadata, the requests of sentinels are hashed, if there are any.

    A column is hashed as its name, one validity byte per row, a letter for its kind, and the
    values, little-endian: 64-bit integers and floats, one byte per boolean; strings and lists as
    their lengths followed by their contents. Chunks, column order, integer widths and values under
    nulls do not matter.
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
    asked = (table.schema.metadata or {}).get(SENTINELS.encode())
    if asked is not None:
        digest.update(b"sentinels:" + asked)
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
