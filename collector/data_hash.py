"""The hash of a table's values, independent of machine, library and memory layout."""

import hashlib
from typing import Final, NamedTuple, Protocol

import numpy as np

from collector.columns import Coded, Column, Kind, Table

SENTINELS: Final = "sentinels"
"""Key of a table's metadata for the requests of the run's sentinels, as JSON."""


class OrderedPairs(NamedTuple):
    """Pairs by prompt id and repeat."""

    table: Table
    prompts: Coded
    """The table's prompt ids; coding them is a good part of the time that ordering takes."""


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def data_hash(table: Table) -> str:
    """Return the SHA-256 of a table's columns, sorted by name, with rows in the given order.

    Columns with only nulls are left out, so that a metric that is scored later changes nothing.
    Of the metadata, the requests of sentinels are hashed, if there are any.

    A column is hashed as its name, one validity byte per row, a letter for its kind, and the
    values, little-endian: 64-bit integers and floats, one byte per boolean; strings and lists as
    their lengths followed by their contents. Column order, integer widths and values under nulls do
    not matter.
    """
    digest = hashlib.sha256()
    for name in sorted(table.columns):
        column = table[name]
        if column.is_empty:
            continue
        digest.update(f"{len(name.encode())}:{name}:{len(column)}:".encode())
        _add(digest, column)
    asked = table.metadata.get(SENTINELS.encode())
    if asked is not None:
        digest.update(b"sentinels:" + asked)
    return digest.hexdigest()


def _add(digest: _Digest, column: Column) -> None:
    digest.update(column.valid.astype("u1").tobytes())
    if column.kind is Kind.LIST:
        digest.update(b"l" + column.lengths.astype("<i8").tobytes())
        _add(digest, column.items)
    elif column.kind is Kind.STRING:
        digest.update(b"s" + column.lengths.astype("<i8").tobytes())
        digest.update(column.data.tobytes())
    elif column.kind is Kind.NULL:
        digest.update(b"n")
    else:
        letter, layout = _LAYOUTS[column.kind]
        digest.update(letter + np.where(column.valid, column.data, 0).astype(layout).tobytes())


_LAYOUTS: Final = {Kind.BOOL: (b"b", "u1"), Kind.INT: (b"i", "<i8"), Kind.FLOAT: (b"f", "<f8")}


def pairs_hash(table: Table) -> str:
    """Return the hash of a table of pairs, whatever the order of its rows."""
    return data_hash(ordered(table))


def ordered(table: Table) -> Table:
    """Return a table of pairs by prompt id and repeat."""
    return by_key(table).table


def by_key(table: Table) -> OrderedPairs:
    """Return a table of pairs by prompt id and repeat, with its prompt ids coded."""
    prompts = table["prompt_id"].coded()
    rows = np.lexsort((table["repeat"].ints(), prompts.codes))
    if (np.diff(rows) == 1).all():
        return OrderedPairs(table, prompts)
    return OrderedPairs(table.take(rows), Coded(prompts.values, prompts.codes[rows]))
