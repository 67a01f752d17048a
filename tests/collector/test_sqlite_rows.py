"""Rows into an SQLite table, a hundred and more at a time."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select
from sqlalchemy.exc import IntegrityError

from collector.store import Store, tables
from collector.store.sqlite.bulk import SqliteBulk


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with (
        Store.open(f"sqlite:///{tmp_path}/d.db") as store,
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
    """SQLite holds it, as PostgreSQL does not."""
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
    """SQLite's own, which names the law."""
    with pytest.raises(IntegrityError, match="NOT NULL"):
        SqliteBulk(connection).insert(tables.content, ("id", "attributes"), [(1, None)])
    with pytest.raises(IntegrityError, match="UNIQUE"):
        SqliteBulk(connection).insert(tables.content, ("id", "attributes"), [(1, b"")] * 2)
