"""Options and error handling shared by the collector's commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NoReturn

import typer

from collector import durations
from collector.errors import CollectorError
from collector.settings import Settings
from collector.store import Store

UNUSABLE = 2
"""Exit code of a command whose input cannot be used."""

Database = Annotated[
    str | None,
    typer.Option(
        help="Database URL (env DRAFTGATE_DATABASE_URL; default sqlite:///draftgate.db).",
        show_default=False,
    ),
]

CollectorToAsk = Annotated[
    str | None,
    typer.Option(
        envvar="DRAFTGATE_COLLECTOR_URL", help="Collector to ask, such as http://localhost:4318."
    ),
]
DatabaseToAsk = Annotated[
    str,
    typer.Option(
        envvar="DRAFTGATE_DATABASE_URL", help="Database to open if no collector is given."
    ),
]


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Print a `CollectorError` as one line and exit with code 2."""
    try:
        yield
    except CollectorError as exc:
        fail(str(exc))


def seconds_of(option: str, text: str | None) -> int | None:
    """Return an option's duration in seconds; raises `SettingsError` if it is malformed."""
    return durations.seconds(option, text) if text is not None else None


def fail(message: str) -> NoReturn:
    """Print the message as an error and exit."""
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(UNUSABLE)


@contextmanager
def open_store(settings: Settings, *, relational_only: bool = False) -> Iterator[Store]:
    """Open the database, creating or upgrading it if needed, and close it on exit."""
    store = Store.open(
        settings.database_url,
        analytics_url=settings.analytics_url,
        relational_only=relational_only,
        busy_timeout_s=settings.busy_timeout_s,
    )
    try:
        yield store
    finally:
        store.close()
