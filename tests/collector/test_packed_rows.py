"""Rows that SQLite reads out of one value are those that Python's driver binds one by one."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from otlp_bodies import received
from sqlalchemy import Connection, Table, func, select
from sqlalchemy.exc import IntegrityError

from collector.contract import Generation, encode
from collector.store import Batch, Store, prepare, tables
from collector.store.sqlite import packed_rows
from collector.store.sqlite.bulk import SqliteBulk

compiled = pytest.importorskip("collector.store._rows")
pytestmark = pytest.mark.skipif(
    not packed_rows.are_readable(), reason="the driver has an SQLite of its own"
)

KINDS = "qidbyt"
LARGEST = 2**63 - 1
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-LARGEST - 1, LARGEST),
        st.none() | st.integers(-(2**31), 2**31 - 1),
        st.none() | st.floats() | st.integers(-(2**53), 2**53),
        st.none() | st.booleans(),
        st.none() | st.binary(max_size=40),
        st.none() | st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40),
    ),
    max_size=5,
)
CREATE = "CREATE TABLE t (q BIGINT, i INTEGER, d DOUBLE, b BOOLEAN, y BLOB, t TEXT)"
READ = "SELECT c0, c1, c2, c3, c4, c5 FROM packed_rows(?, ?)"


def stored(rows: Sequence[tuple[Any, ...]], *, packed: bool) -> list[tuple[Any, ...]]:
    """Return what a table holds after the rows were inserted, with the types that SQLite gave."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(CREATE)
        if packed:
            value = compiled.pack(rows, KINDS)
            connection.execute(f"INSERT INTO t {READ}", (value, KINDS))
        else:
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
        types = "typeof(q), typeof(i), typeof(d), typeof(b), typeof(y), typeof(t)"
        return connection.execute(f"SELECT *, {types} FROM t ORDER BY rowid").fetchall()  # noqa: S608  # ours


@settings(deadline=None, max_examples=300)
@given(ROWS)
def test_packed_rows_are_stored_as_bound_ones_are(rows: list[tuple[Any, ...]]) -> None:
    """Value by value and type by type, NULLs and values of no length too."""
    assert stored(rows, packed=True) == stored(rows, packed=False)


def test_garbled_rows_are_an_error() -> None:
    """Cut anywhere, or read as rows of other columns, they are refused and never read beyond."""
    whole = compiled.pack([(1, 2, 0.5, True, b"y", "t")] * 2, KINDS)
    with closing(sqlite3.connect(":memory:")) as connection:
        for end in range(len(whole)):
            with pytest.raises(sqlite3.Error):
                connection.execute(READ, (whole[:end], KINDS)).fetchall()
        for kinds in ("q", "qiqbyt", "qidqyt", "qidbytt", "q" * 65, "......", None, b""):
            if kinds is not None:
                with pytest.raises(sqlite3.Error):
                    connection.execute(READ, (whole[:60] + whole[61:], kinds)).fetchall()
        for arguments in ((None, KINDS), (whole, None), (b"", KINDS), (1, 2)):
            with pytest.raises(sqlite3.Error):
                connection.execute(READ, arguments).fetchall()


def test_both_arguments_are_asked_for() -> None:
    """Without them there is nothing to read; a column beyond the rows' is NULL."""
    whole = compiled.pack([(7,)], "q")
    with closing(sqlite3.connect(":memory:")) as connection:
        with pytest.raises(sqlite3.Error):
            connection.execute("SELECT c0 FROM packed_rows")
        with pytest.raises(sqlite3.Error):
            connection.execute("SELECT c0 FROM packed_rows(?1)", (whole,))
        read = "SELECT rowid, c0, c1, c63, rows, kinds FROM packed_rows(?, 'q')"
        assert connection.execute(read, (whole,)).fetchall() == [(1, 7, None, None, None, None)]
        joined = "SELECT a.c0 + b.c0 FROM packed_rows(?1, 'q') a, packed_rows(?1, 'q') b"
        assert connection.execute(joined, (whole,)).fetchall() == [(14,)]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with (
        closing(Store.open(f"sqlite:///{tmp_path}/d.db")) as store,
        store.transaction() as connection,
    ):
        yield connection


def test_new_keys_are_counted(connection: Connection) -> None:
    """Of rows in several statements' worth, those that are there already are left out."""
    columns = ("trace_id", "span_id", "id")
    rows = [(bytes([n // 256]) * 16, bytes([n % 256]) * 8, n) for n in range(600)]
    new = SqliteBulk(connection)
    assert new.insert_new(tables.span_key, columns, rows[:300]) == 300
    assert new.insert_new(tables.span_key, columns, rows) == 300
    assert connection.scalar(select(func.count()).select_from(tables.span_key)) == 600


def test_a_text_with_a_character_0_is_stored_whole(connection: Connection) -> None:
    """Such a row cannot be packed: it and its neighbours are bound one by one."""
    rows = [{"id": n, "document": text} for n, text in enumerate(("a", "b\0c"))]
    table = tables.verdict
    full = [
        {"id": str(row["id"]), "rollout": "r", "posted_unix_ns": 1, "document": row["document"]}
        for row in rows
    ]
    SqliteBulk(connection).insert_sparse(table, full)
    SqliteBulk(connection).insert(table, tuple(full[0]), [("x", "r", 1, "d\0")])
    found = connection.scalars(select(table.c.document).order_by(table.c.id)).all()
    assert found == ["a", "b\0c", "d\0"]


def test_a_row_that_breaks_a_law_of_its_table_is_an_error(connection: Connection) -> None:
    """As it is where rows are bound one by one."""
    with pytest.raises(IntegrityError, match="NOT NULL"):
        SqliteBulk(connection).insert(tables.content, ("id", "attributes"), [(1, None)])
    with pytest.raises(IntegrityError, match="UNIQUE"):
        SqliteBulk(connection).insert(tables.content, ("id", "attributes"), [(1, b"")] * 2)


def test_without_it_the_same_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generation_of: Any
) -> None:
    """Where there was no compiler, rows are bound one by one, and the tables are equal."""
    spans = prepare_all([generation_of(number) for number in range(1, 300)])
    found = []
    for readable in (True, False):
        monkeypatch.setattr(packed_rows, "are_readable", lambda readable=readable: readable)
        with closing(Store.open(f"sqlite:///{tmp_path}/{readable}.db")) as store:
            assert store.write(Batch(spans=spans)) == len(spans)
            assert store.write(Batch(spans=spans)) == 0
            with store.read() as connection:
                found.append([all_of(connection, table) for table in WRITTEN])
    assert found[0] == found[1]
    assert all(rows for rows in found[0])


WRITTEN = (tables.span_key, tables.span, tables.generation, tables.series, tables.rollup_delta)


def all_of(connection: Connection, table: Table) -> list[tuple[Any, ...]]:
    """Return the table's rows without what the time of writing decides."""
    columns = [column for column in table.columns if column.name != "id"]
    return sorted(tuple(row) for row in connection.execute(select(*columns)))


def prepare_all(generations: Sequence[Generation]) -> Any:
    return prepare(received([encode(generation) for generation in generations]))
