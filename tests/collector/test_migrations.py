"""The schema: as the code says, upgraded by a further migration, refused if it is newer."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from made_generations import generation_of
from otlp_bodies import received

from collector.contract import encode
from collector.errors import StoreError
from collector.ingest.preparation import prepare
from collector.store import Batch, Store, migrate
from collector.store.tables import metadata
from collector.store.upkeep import rollup_check

HEAD = sorted((migrate.migrations_folder() / "versions").glob("0*.py"))[-1].name.partition("_")[0]
LATER = f"{int(HEAD) + 1:04}"
NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "LATER"
down_revision = "HEAD"


def upgrade() -> None:
    op.add_column("generation", sa.Column("verify_s", sa.Double(), nullable=True))
    op.execute("UPDATE generation SET verify_s = 2 * ttft_s")
""".replace("LATER", LATER).replace("HEAD", HEAD)


@pytest.fixture
def _with_a_next_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a further migration, as a later version would."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrate.migrations_folder(), folder)
    (folder / "versions" / f"{LATER}_verify.py").write_text(NEXT)
    monkeypatch.setattr(migrate, "migrations_folder", lambda: folder)


def test_migrations_have_own_revisions_and_one_head() -> None:
    """No two migrations share a revision, each file begins with its own, and the last is the head.

    Two branches that each add a migration merge without a conflict in git.
    """
    folder = migrate.migrations_folder()
    texts = {path.name: path.read_text() for path in sorted((folder / "versions").glob("*.py"))}
    revisions = [re.findall(r'^revision = "(.+)"$', text, re.MULTILINE) for text in texts.values()]
    assert revisions == [[name.partition("_")[0]] for name in texts]
    assert len({one[0] for one in revisions}) == len(texts)
    assert ScriptDirectory(str(folder)).get_heads() == revisions[-1]


def test_the_migrated_schema_is_the_one_in_the_code(any_database_url: str) -> None:
    """Alembic finds nothing to change but the index that PostgreSQL alone has."""
    with Store.open(any_database_url) as store, store.read() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": is_common})
        assert compare_metadata(context, metadata) == []


def test_a_next_migration_finds_every_row(
    any_database_url: str, request: pytest.FixtureRequest
) -> None:
    """Opening upgrades a filled database in place; spans are written and counted as before."""
    first, second = (Batch(spans=prepare(received([encode(generation_of(n))]))) for n in (1, 2))
    with Store.open(any_database_url) as store:
        store.write(first)
    request.getfixturevalue("_with_a_next_migration")
    with Store.open(any_database_url) as store:
        store.write(second)
        with store.read() as connection:
            found = connection.execute(sa.text("SELECT verify_s FROM generation ORDER BY id"))
            assert found.scalars().all() == [1.0, None]
            assert list(rollup_check.differences(connection)) == []


@pytest.mark.usefixtures("_with_a_next_migration")
def test_a_newer_schema_is_refused(any_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of a later version is left as it is, and the error says what to do."""
    Store.open(any_database_url).close()
    monkeypatch.undo()
    newer = rf"written by a newer Draftgate \(schema {LATER}, this one knows {HEAD}\)"
    with pytest.raises(StoreError, match=newer):
        Store.open(any_database_url)


def is_common(_item: Any, name: str | None, _kind: str, _reflected: bool, _to: Any) -> bool:
    """Leave out the BRIN index of the keys."""
    return name != "ix_span_key_id"
