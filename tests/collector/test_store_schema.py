"""The schema's history, and databases that are refused."""

import contextlib
import logging
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import run_to_end
from made_generations import generation_of, score_of
from otlp_bodies import received

from collector import dialects
from collector.content import ContentPolicy, Redactor
from collector.contract import Content, Span, encode
from collector.errors import StoreError
from collector.ingest.preparation import prepare
from collector.store import Batch, Store, traces
from collector.store.evidence import generations
from collector.store.tables import metadata
from collector.store.upkeep import sizes

KEEP = ContentPolicy(Redactor(()))
EMPTY = dict.fromkeys(metadata.tables, 0) | {"secret": 1}


def test_opening_again_keeps_what_is_stored(database_url: str, odd_span: Span) -> None:
    """A second opening finds the schema current and every row in place, whole."""
    generation = generation_of(1)
    with Store.open(database_url) as store:
        store.write(Batch(spans=prepare(received([encode(generation), odd_span]), KEEP)))
    with Store.open(database_url) as store, store.read() as connection:
        page = generations.page(
            connection, generations.GenerationFilter("k4"), content_of=dialects.content, limit=10
        )
        assert page == ((generation,), None)
        assert traces.trace(connection, odd_span.trace_id) == (odd_span,)


def test_migrating_leaves_logging_alone(database_url: str) -> None:
    """Neither the root logger nor a disabled flag changes."""
    logger = logging.getLogger("collector")
    before = (logging.root.level, list(logging.root.handlers), logger.disabled)
    Store.open(database_url).close()
    assert (logging.root.level, list(logging.root.handlers), logger.disabled) == before


def test_migrations_are_found_inside_an_installed_package(tmp_path: Path) -> None:
    """Without a checkout, the folder inside the package is used."""
    root = Path(__file__).parents[2]
    shutil.copytree(root / "collector", tmp_path / "site" / "collector")
    shutil.copytree(root / "migrations", tmp_path / "site" / "collector" / "store" / "migrations")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from collector.store import Store, migrate\n"
        "print(migrate.migrations_folder()); Store.open(sys.argv[2]).close()"
    )
    done = run_to_end(
        [sys.executable, "-c", script, tmp_path / "site", f"sqlite:///{tmp_path / 'x.db'}"],
        cwd=tmp_path,
    )
    assert done.stdout.strip() == str(tmp_path / "site" / "collector" / "store" / "migrations")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://db/x", "mysql://…: is not a supported kind of database; wanted sqlite:///"),
        ("postgresql://u:secret@127.0.0.1:1/x", "postgresql+psycopg://u:***@127.0.0.1:1/x: "),
        ("nonsense", "'nonsense': is no database URL; wanted sqlite:///"),
        ("sqlite://", "an in-memory database is lost between connections; name a file"),
        ("sqlite:///:memory:", "an in-memory database is lost between connections"),
        ("sqlite:////no/such/folder/x.db", "the folder /no/such/folder does not exist; create it"),
        ("sqlite:////tmp", "/tmp: is a folder; name a file in it"),
    ],
)
def test_a_url_that_cannot_be_a_database_is_refused(url: str, message: str) -> None:
    """The error names the given and the supported values and the remedy, in one line."""
    with pytest.raises(StoreError) as caught:
        Store.open(url)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"hello", b"PAR1" + bytes(5000), b"SQLite format 4\0" * 99])
def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    """The error names the file and the remedy; nothing is written, not even beside it."""
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    with pytest.raises(
        StoreError, match=r"notes\.txt: is no SQLite database .*; name another file"
    ):
        Store.open(f"sqlite:///{file}")
    assert file.read_bytes() == content
    assert list(tmp_path.iterdir()) == [file]


def test_a_corrupt_database_is_named(tmp_path: Path) -> None:
    """A file that only begins like a database is refused as unusable."""
    file = tmp_path / "torn.db"
    file.write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)
    with pytest.raises(StoreError, match=r"torn\.db: file is not a database; name another file"):
        Store.open(f"sqlite:///{file}")


def test_the_tables_of_another_program_are_left_alone(tmp_path: Path) -> None:
    """A database that is not ours is refused, and its content is unchanged."""
    file = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE customers (name)")
    before = file.read_bytes()
    with pytest.raises(StoreError, match=r"other\.db: holds tables of another program"):
        Store.open(f"sqlite:///{file}")
    assert file.read_bytes() == before


def test_an_interrupted_creation_leaves_nothing(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schema is made in one transaction: a failure in it leaves no table, and no trap."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("alembic.op.create_index", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Store.open(database_url)
    assert table_names(Path(database_url.removeprefix("sqlite:///"))) == []
    Store.open(database_url).close()


def test_text_can_be_deleted_while_numbers_stay(database_url: str) -> None:
    """Emptying the content table takes prompts and answers away, and nothing else."""
    content = Content(input_messages="[]", output_messages="[]", context=("a",), reference="r")
    generation = generation_of(1, content=content)
    bare = generation_of(1)
    with Store.open(database_url) as store:
        store.write(Batch(spans=prepare(received([encode(generation)]), KEEP)))
        with store.engine.begin() as connection:
            connection.execute(metadata.tables["content"].delete())
        with store.read() as connection:
            page = generations.page(
                connection,
                generations.GenerationFilter("k4"),
                content_of=dialects.content,
                limit=10,
            )
            assert page.records == (bare,)
            assert traces.trace(connection, bare.trace_id) == (encode(bare),)


def test_a_failed_batch_stores_nothing(database_url: str) -> None:
    """Spans and scores of one batch are stored together or not at all."""
    spans = prepare(received([encode(generation_of(1))]))
    impossible = score_of(generation_of(), version="\ud800")
    with Store.open(database_url) as store:
        with pytest.raises(UnicodeEncodeError):
            store.write(Batch(spans=spans, scores=(impossible,)))
        with store.read() as connection:
            assert sizes.row_counts(connection) == EMPTY


def table_names(file: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
