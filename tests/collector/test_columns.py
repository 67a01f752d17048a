"""Tables hold, take, join and write what Arrow's own library holds."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.columns import ArrowError, Column, Kind, Table, concat, joined

KINDS = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=5) | st.sampled_from(["chat", "code", "ä\0"]),
    pa.list_(pa.int64()): st.lists(st.integers(0, 9), max_size=3),
    pa.list_(pa.string()): st.lists(st.none() | st.text(max_size=2), max_size=3),
    pa.null(): st.none(),
}


@st.composite
def arrays(draw: st.DrawFn) -> pa.ChunkedArray:
    """Return a column of one kind, in chunks that begin anywhere, with missing values."""
    kind, values = draw(st.sampled_from(list(KINDS.items())))
    chunks = draw(st.lists(st.lists(st.none() | values, max_size=12), min_size=1, max_size=3))
    cut = draw(st.integers(0, 3))
    return pa.chunked_array([pa.array(chunk, kind)[cut:] for chunk in chunks], kind)


@given(arrays(), st.data())
def test_a_column_is_what_arrow_read(array: pa.ChunkedArray, data: st.DataObject) -> None:
    """Through a stream, by rows, in parts, and back."""
    table = Table.read(pa.table({"a": array}))
    assert table["a"].to_list() == array.to_pylist()
    assert pa.ipc.open_stream(table.to_ipc()).read_all().equals(pa.table({"a": array}))
    assert Table.read(table.to_ipc()).to_ipc() == table.to_ipc()
    rows = data.draw(st.lists(st.integers(0, len(array) - 1))) if len(array) else []
    taken = table.take(pa.array(rows, pa.int64()).to_numpy())
    assert taken["a"].to_list() == [array.to_pylist()[row] for row in rows]
    assert pa.table(taken).num_rows == len(rows)
    both = joined([table, taken, Table({"b": Column.of([1.5], Kind.FLOAT)})])
    assert both["a"].to_list() == [*array.to_pylist(), *taken["a"], None]
    assert both["b"].to_list() == [None] * (len(table) + len(rows)) + [1.5]


@given(arrays().filter(lambda one: not pa.types.is_list(one.type)))
def test_a_coded_column_is_the_column(array: pa.ChunkedArray) -> None:
    """Distinct values ascend, and each row names its own."""
    values, codes = Table.read(pa.table({"a": array}))["a"].coded()
    assert values == sorted({one for one in array.to_pylist() if one is not None})
    assert [*map([*values, None].__getitem__, codes)] == array.to_pylist()


def test_contents_under_missing_values_are_left_out() -> None:
    """Arrow allows bytes and items under a missing value; they are neither shown nor hashed."""
    ends, known = pa.py_buffer(bytes([0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0])), pa.py_buffer(b"\x02")
    text = pa.Array.from_buffers(pa.string(), 2, [known, ends, pa.py_buffer(b"abc")])
    read = Table.read(pa.table({"a": text}))["a"]
    assert (read.to_list(), read.data.tobytes(), read.lengths.tolist()) == (
        [None, "c"],
        b"c",
        [0, 1],
    )


def test_metadata_and_names_travel() -> None:
    """A schema's metadata, and a table without rows."""
    arrow = pa.table({"ä": pa.array([], pa.list_(pa.string()))}).replace_schema_metadata({"k": "v"})
    table = Table.read(arrow)
    assert (dict(table.metadata), len(table)) == ({b"k": b"v"}, 0)
    assert pa.table(table).schema.metadata == {b"k": b"v"}
    assert pa.table(table).equals(arrow)


def test_what_is_no_table_of_these_kinds_is_refused() -> None:
    """No Arrow, a type without a kind, and columns that do not fit."""
    with pytest.raises(ArrowError):
        Table.read(b"no Arrow at all, but some text")
    with pytest.raises(TypeError, match="got the Arrow format"):
        Table.read(pa.table({"a": pa.array([b"x"])}))
    with pytest.raises(TypeError, match="of one kind, got boolean, string"):
        concat([Column.of(["a"], Kind.STRING), Column.of([True], Kind.BOOL)])
    with pytest.raises(TypeError, match="got a column of kind string"):
        Column.of(["a"], Kind.STRING).floats()
