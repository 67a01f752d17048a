"""Schema migrations: upgrade a database to the newest revision."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from collector.errors import StoreError


def migrations_folder() -> Path:
    """Return the folder of migrations: in the installed package, or the checkout's root."""
    packaged = Path(__file__).parent / "migrations"
    checkout = Path(__file__).parents[2] / "migrations"
    for folder in (packaged, checkout):
        if (folder / "env.py").is_file():
            return folder
    raise StoreError(f"no migrations in {packaged} or {checkout}; reinstall draftgate")


def configuration(connection: Connection) -> Config:
    """Return alembic's configuration for a migration on this connection."""
    config = Config()
    # A percent sign would be read as interpolation.
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def is_current(connection: Connection) -> bool:
    """Return whether the database is at the newest revision."""
    newest = ScriptDirectory.from_config(configuration(connection)).get_current_head()
    return MigrationContext.configure(connection).get_current_revision() == newest


def upgrade(connection: Connection, *, where: str) -> None:
    """Upgrade the database to the newest revision, inside the connection's transaction.

    Raises `StoreError` for tables of another program and for a revision that this version does not
    know; nothing is changed then. `where` names the database in the message.
    """
    config = configuration(connection)
    scripts = ScriptDirectory.from_config(config)
    current = MigrationContext.configure(connection).get_current_revision()
    if current == scripts.get_current_head():
        return
    if current is None and inspect(connection).get_table_names():
        raise StoreError(
            f"{where}: holds tables of another program; name a file of Draftgate's own, "
            "or one that does not exist yet"
        )
    known = {script.revision for script in scripts.walk_revisions()}
    if current is not None and current not in known:
        raise StoreError(
            f"{where}: was written by a newer Draftgate (schema {current}, this one knows "
            f"{scripts.get_current_head()}); upgrade Draftgate, or name another file"
        )
    command.upgrade(config, "head")
