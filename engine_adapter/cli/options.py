"""Shared parts of the router's commands: arguments, error handling, the collector's client."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from collector.client import ClientError
from engine_adapter.errors import AdapterError
from engine_adapter.routes import LAUNCH_NAME

FAILED: Final = 1
UNUSABLE: Final = 2
UNDECIDED: Final = 3

RolloutName = Annotated[str, typer.Argument(metavar="ROLLOUT", help="Name of the rollout.")]
Collector = Annotated[
    str | None,
    typer.Option(
        envvar="DRAFTGATE_COLLECTOR_URL", help="Collector to ask, such as http://localhost:4318."
    ),
]
Database = Annotated[
    str,
    typer.Option(
        envvar="DRAFTGATE_DATABASE_URL", help="Database to open if no collector is given."
    ),
]


def _launch_name(given: str | None) -> str | None:
    if given is not None and not re.fullmatch(LAUNCH_NAME, given):
        raise typer.BadParameter(f"{given!r}; wanted up to 100 letters, digits, and . : / _ -")
    return given


Launch = Annotated[
    str | None,
    typer.Option(
        callback=_launch_name,
        help="What to call this launch of the servers that you started; another name after every "
        "restart.",
    ),
]


@contextmanager
def usable() -> Iterator[None]:
    """Turn an `AdapterError` or `ClientError` into one line and exit code 2."""
    try:
        yield
    except (AdapterError, ClientError) as exc:
        typer.echo(f"error: {exc}", err=True)
        raise typer.Exit(UNUSABLE) from exc
