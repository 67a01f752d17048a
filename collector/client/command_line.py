"""Shared by commands that ask a collector: its options, and errors in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final, NoReturn

import typer

UNUSABLE: Final = 2
"""Exit code of a command whose input cannot be used."""

Collector = Annotated[
    str | None,
    typer.Option(
        envvar="DRAFTGATE_COLLECTOR_URL", help="Collector to ask, such as http://localhost:4318."
    ),
]
Database = Annotated[
    str,
    typer.Option(
        envvar="DRAFTGATE_DATABASE_URL",
        help="Database to open if no collector is given; needs the extra `collector`.",
    ),
]


@contextmanager
def one_line_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Print an exception of these kinds as one line, and exit with code 2."""
    try:
        yield
    except kinds as exc:
        fail(str(exc), exc)


def fail(message: str, cause: Exception | None = None) -> NoReturn:
    """Print the message as an error, and exit with code 2."""
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(UNUSABLE) from cause
