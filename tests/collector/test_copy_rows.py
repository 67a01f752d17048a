"""Rows packed for PostgreSQL's COPY equal the driver's, byte for byte."""

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import postgres
from psycopg._copy_base import BinaryFormatter
from psycopg.adapt import Transformer

from collector.store import tables
from collector.store.relational.packing import PACKED_KINDS, type_of

compiled = pytest.importorskip("collector.store._rows")

TYPES = tuple(PACKED_KINDS)
KINDS = "".join(PACKED_KINDS.values())
LARGEST = 2**63 - 1
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-LARGEST - 1, LARGEST),
    "int4": st.integers(-(2**31), 2**31 - 1),
    "float8": st.floats() | st.integers(-(2**70), 2**70),
    "bool": st.booleans(),
    "bytea": st.binary(max_size=40),
    "text": st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40),
    "varchar": st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8),
}
ROWS = st.lists(st.tuples(*(st.none() | VALUES[name] for name in TYPES)), max_size=5)


def driven(rows: list[tuple[Any, ...]], types: Sequence[str] = TYPES) -> bytes:
    """Return the driver's bytes for the rows."""
    transformer = Transformer()
    oids = [postgres.types[name].oid for name in types]
    transformer.set_dumper_types(oids, psycopg.pq.Format.BINARY)
    formatter = BinaryFormatter(transformer)
    sent = b"".join(bytes(formatter.write_row(row)) for row in rows)
    return sent + bytes(formatter.end())


@settings(deadline=None, max_examples=300)
@given(ROWS)
def test_packed_rows_are_the_drivers(rows: list[tuple[Any, ...]]) -> None:
    """Rows in columns' order, and rows by name of which an absent column is NULL, are the same."""
    assert compiled.pack(rows, KINDS) == driven(rows)
    named = [
        {name: value for name, value in zip(TYPES, row, strict=True) if value is not None}
        for row in rows
    ]
    present = [name for name in TYPES if any(name in row for row in named)]
    some = [tuple(map(row.get, present)) for row in named]
    assert compiled.pack_named(named, TYPES, KINDS) == (driven(some, present), tuple(present))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("q", LARGEST + 1),
        ("q", -LARGEST - 2),
        ("q", True),
        ("q", 1.0),
        ("q", "1"),
        ("i", 2**31),
        ("i", -(2**31) - 1),
        ("d", True),
        ("d", 10**400),
        ("d", "1"),
        ("b", 1),
        ("y", "text"),
        ("y", bytearray(b"1")),
        ("t", "a\0b"),
        ("t", "\ud800"),
        ("t", b"bytes"),
        ("z", 1),
    ],
)
def test_what_is_not_as_its_column_is_left_to_the_driver(kind: str, value: object) -> None:
    """A value of another type or beyond its range, wherever it stands, leaves all of the rows."""
    assert compiled.pack([(None,), (value,)], kind) is None
    assert compiled.pack_named([{}, {"a": value}], ("a",), kind) is None


def test_other_rows_are_left_or_refused() -> None:
    """Rows of another length or shape are left; kinds that are not one a column are refused."""
    for row in ((), (1, 2), [1], {"a": 1}, None):
        assert compiled.pack([row], "q") is None
    for row in ({"b": 1}, {"a": 1, "b": 2}, {1: 1}, (1,), None):
        assert compiled.pack_named([row], ("a",), "q") is None
    with pytest.raises(ValueError, match="a kind for each"):
        compiled.pack_named([{}], ("a",), "qq")
    with pytest.raises(ValueError, match="too many kinds"):
        compiled.pack([], "q" * 2**15)
    for arguments in (([{}], ["a"], "q"), ({}, ("a",), "q")):
        with pytest.raises(TypeError):
            compiled.pack_named(*arguments)


def test_every_column_has_a_kind() -> None:
    """No table has a column whose type could not be packed."""
    for table in (tables.span, tables.span_key, tables.content, tables.generation):
        assert {type_of(column) for column in table.columns} <= PACKED_KINDS.keys()


def test_names_are_found_in_any_order_and_made_anew() -> None:
    """Rows whose names stand in another order, or are equal and not the same object, are alike."""
    again = "".join(("a", "b"))
    rows = [{"ab": 1, "c": 2}, {"c": 2, again: 1}, {"c": 2}, {}]
    wanted = compiled.pack([(1, 2), (1, 2), (None, 2), (None, None)], "qq")
    assert compiled.pack_named(rows, ("ab", "b", "c"), "qdq") == (wanted, ("ab", "c"))
    assert compiled.pack_named([], ("a",), "q") == (compiled.pack([], ""), ())
