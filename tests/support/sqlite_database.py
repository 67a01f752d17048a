"""A collector's SQLite database, as another process sees it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


def file_of(database_url: str) -> Path:
    """Return the database's file."""
    return Path(database_url.removeprefix("sqlite:///"))


@contextmanager
def locked(database_url: str) -> Iterator[None]:
    """Hold the database's write lock, as another process would."""
    with closing(sqlite3.connect(file_of(database_url), isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def trace_ids(database_url: str) -> set[str]:
    """Return the trace ids of the stored generations; each has all its rows, once."""
    with closing(sqlite3.connect(file_of(database_url))) as connection:
        ids = [row[0].hex() for row in connection.execute("SELECT trace_id FROM generation")]
        for table in ("span", "span_key"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (len(ids),)  # noqa: S608
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert len(set(ids)) == len(ids)
    return set(ids)


def count_scores(file: Path) -> int:
    """Return how many scores are stored, at once, however busy the collector is."""
    with closing(sqlite3.connect(file)) as connection:
        (found,) = connection.execute("SELECT count(*) FROM score").fetchone()
    return int(found)
