"""A column of values, any of which may be missing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_BLOCK: Final = 65_536
"""Rows whose contents are gathered at a time, which bounds the memory of their places."""


class Kind(StrEnum):
    """The type of a column's values."""

    NULL = "null"
    BOOL = "boolean"
    INT = "integer"
    FLOAT = "float"
    STRING = "string"
    LIST = "list"


_DTYPES: Final[dict[Kind, Any]] = {  # Any: numpy's types
    Kind.NULL: np.bool_,
    Kind.BOOL: np.bool_,
    Kind.INT: np.int64,
    Kind.FLOAT: np.float64,
    Kind.STRING: np.uint8,
}


class Coded(NamedTuple):
    """A column by its distinct values."""

    values: list[Any]  # Any: of the column's kind
    """Ascending."""
    codes: NDArray[np.int64]
    """Each row's index into `values`; −1 without a value."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Values of one kind; contents under missing values have no meaning."""

    kind: Kind
    valid: NDArray[np.bool_]
    """Which rows have a value."""
    values: "NDArray[Any] | Column"
    """One per row; for strings the bytes of all in UTF-8, for lists the column of all items."""
    offsets: NDArray[np.int64] | None = None
    """Of strings and lists: where each row's contents begin, and the end.

    Missing values have no contents.
    """

    @classmethod
    def of(cls, values: Sequence[Any], kind: Kind) -> "Column":  # Any: of the kind
        """Return a column of Python values; None is missing. Lists are not supported."""
        valid = np.array([one is not None for one in values], dtype=np.bool_)
        if kind is not Kind.STRING:
            plain = [0 if one is None else one for one in values]
            return cls(kind, valid, np.array(plain, dtype=_DTYPES[kind]))
        encoded = [(one or "").encode() for one in values]
        return cls(kind, valid, _bytes(encoded), offsets_of([len(one) for one in encoded]))

    @classmethod
    def of_numbers(cls, values: NDArray[np.int64]) -> "Column":
        """Return a column of integers, none missing."""
        return cls(Kind.INT, np.ones(len(values), dtype=np.bool_), values)

    @classmethod
    def nulls(cls, rows: int) -> "Column":
        """Return a column without any value."""
        missing = np.zeros(rows, dtype=np.bool_)
        return cls(Kind.NULL, missing, missing)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.valid)

    def __iter__(self) -> Iterator[Any]:  # Any: of the column's kind
        """Yield the rows' values; None for missing ones."""
        return iter(self.to_list())

    @property
    def is_empty(self) -> bool:
        """Whether no row has a value."""
        return not self.valid.any()

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of bytes of each string, or items of each list; 0 without a value."""
        if self.kind is Kind.NULL:
            return np.zeros(len(self), dtype=np.int64)
        return np.diff(self._offsets)

    @property
    def items(self) -> "Column":
        """The items of all lists, row after row; raises `TypeError` for other kinds."""
        if self.kind is Kind.NULL:
            return self.nulls(0)
        if not isinstance(self.values, Column):
            raise TypeError(f"wanted lists, got a column of kind {self.kind}")
        return self.values

    @property
    def data(self) -> NDArray[Any]:  # Any: by kind
        """The values; for strings all bytes; raises `TypeError` for lists."""
        if isinstance(self.values, Column):
            raise TypeError("wanted a column of plain values, got lists")
        return self.values

    @property
    def _offsets(self) -> NDArray[np.int64]:
        if self.offsets is None:
            raise TypeError(f"wanted strings or lists, got a column of kind {self.kind}")
        return self.offsets

    def floats(self) -> NDArray[np.float64]:
        """Return a column of numbers or booleans; NaN for missing values."""
        return np.where(self.valid, self._plain(), np.nan)

    def ints(self, missing: int = -1) -> NDArray[np.int64]:
        """Return a column of numbers or booleans as integers."""
        return np.where(self.valid, self._plain().astype(np.int64, copy=False), missing)

    def bools(self) -> NDArray[np.bool_]:
        """Return a column of booleans or numbers; False for missing values."""
        return self.valid & self._plain().astype(np.bool_)

    def _plain(self) -> NDArray[Any]:  # Any: by kind
        if self.offsets is not None:
            raise TypeError(f"wanted numbers or booleans, got a column of kind {self.kind}")
        return self.data

    def to_list(self) -> list[Any]:  # Any: of the column's kind
        """Return the rows' values; None for missing ones."""
        if self.kind is Kind.LIST:
            items = self.items.to_list()
            values: list[Any] = [items[a:b] for a, b in pairwise(self._offsets.tolist())]
        elif self.kind is Kind.STRING:
            values = _texts(self.data.tobytes(), self._offsets.tolist())
        else:
            values = self.data.tolist()
        if self.valid.all():
            return values
        return [one if ok else None for one, ok in zip(values, self.valid.tolist(), strict=True)]

    def coded(self) -> Coded:
        """Return the distinct values of a column without lists, and each row's."""
        if self.kind is not Kind.STRING:
            found, inverse = np.unique(self._plain()[self.valid], return_inverse=True)
            codes = np.full(len(self), -1, dtype=np.int64)
            codes[self.valid] = inverse
            return Coded(found.tolist(), codes)
        texts = self.to_list()
        distinct = dict.fromkeys(texts)  # in the rows' order: ordered rows are sorted quickly
        distinct.pop(None, None)
        values = sorted(distinct)
        code_of = {None: -1, **dict(zip(values, range(len(values)), strict=True))}
        return Coded(values, np.fromiter(map(code_of.__getitem__, texts), np.int64, len(texts)))

    def take(self, rows: NDArray[np.int64]) -> "Column":
        """Return the rows at these indices, in their order."""
        valid = self.valid[rows]
        if self.offsets is None:
            return Column(self.kind, valid, self.data[rows])
        starts, lengths = self.offsets[:-1][rows], np.where(valid, self.lengths[rows], 0)
        return Column(self.kind, valid, self._contents(rows, starts, lengths), offsets_of(lengths))

    def _contents(
        self, rows: NDArray[np.int64], starts: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> "NDArray[Any] | Column":
        width = int(self.lengths[0]) if len(self) else 0
        if isinstance(self.values, np.ndarray) and width and (self.lengths == width).all():
            return self.values.reshape(-1, width)[rows].reshape(-1)
        blocks = [slice(at, at + _BLOCK) for at in range(0, max(len(rows), 1), _BLOCK)]
        places = (_places(starts[block], lengths[block]) for block in blocks)
        if isinstance(self.values, Column):
            return concat([self.values.take(some) for some in places])
        return np.concatenate([self.values[some] for some in places])


def concat(columns: Sequence[Column]) -> Column:
    """Return the rows of one or more columns after each other; raises `TypeError` if kinds differ.

    A column of kind `NULL` goes with every other.
    """
    if len(columns) == 1:
        return columns[0]
    kinds = {one.kind for one in columns} - {Kind.NULL} or {Kind.NULL}
    if len(kinds) > 1:
        raise TypeError(f"wanted columns of one kind, got {', '.join(sorted(kinds))}")
    (kind,) = kinds
    valid = np.concatenate([one.valid for one in columns])
    if kind in (Kind.STRING, Kind.LIST):
        offsets = offsets_of(np.concatenate([one.lengths for one in columns]))
        given = [one for one in columns if one.kind is kind]
        if kind is Kind.LIST:
            return Column(kind, valid, concat([one.items for one in given]), offsets)
        return Column(kind, valid, np.concatenate([one.data for one in given]), offsets)
    values = np.concatenate([one.data for one in columns], dtype=_DTYPES[kind], casting="unsafe")
    return Column(kind, valid, values)


def offsets_of(lengths: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where contents of these lengths begin, and the end."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _places(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of contents that begin at `starts` and have these lengths."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - ends + lengths, lengths)


def _bytes(parts: Sequence[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(parts), dtype=np.uint8)


def _texts(data: bytes, offsets: list[int]) -> list[str]:
    if data.isascii():  # then offsets count characters, too
        text = data.decode()
        return [text[start:end] for start, end in pairwise(offsets)]
    return [data[start:end].decode() for start, end in pairwise(offsets)]
