"""Options and error handling shared by the collector's commands."""

from contextlib import AbstractContextManager
from typing import Annotated

import typer

from collector import durations
from collector.client.command_line import one_line_errors
from collector.errors import CollectorError
from collector.settings import VARIABLES, Settings
from collector.store import Store


def help_of(setting: str) -> str:
    """Return the help of the option that sets this setting of the collector."""
    variable = VARIABLES[setting]
    return f"{variable.help} (env {variable.name}; default: {variable.default})"


Database = Annotated[str | None, typer.Option(help=help_of("database_url"), show_default=False)]


def usable() -> AbstractContextManager[None]:
    """Print a `CollectorError` as one line and exit with code 2."""
    return one_line_errors(CollectorError)


def seconds_of(option: str, text: str | None) -> int | None:
    """Return an option's duration in seconds; raises `SettingsError` if it is malformed."""
    return durations.seconds(option, text) if text is not None else None


def open_store(settings: Settings, *, relational_only: bool = False) -> Store:
    """Open the database, creating or upgrading it if needed; close it on exit."""
    return Store.open(
        settings.database_url,
        analytics_url=settings.analytics_url,
        relational_only=relational_only,
        busy_timeout_s=settings.busy_timeout_s,
    )
