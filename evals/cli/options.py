"""Arguments, exit codes and helpers that the commands share."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Annotated

import typer

from collector.client import ClientError
from collector.contract import Outcome
from evals.errors import EvalsError


class ExitCode(IntEnum):
    """Exit codes of `gate` and similar commands."""

    PASS = 0
    FAIL = 1
    UNUSABLE = 2
    INCONCLUSIVE = 3


EXIT = {
    Outcome.PASS: ExitCode.PASS,
    Outcome.FAIL: ExitCode.FAIL,
    Outcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
}


Rollout = Annotated[str, typer.Argument(help="Name of the rollout.")]
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
PolicyFile = Annotated[
    str,
    typer.Option(
        "--policy",
        help="Policy file, or the name of a shipped one: default, quality, lossless, demo.",
    ),
]

PolicyOfRollout = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="Policy file, or the name of a shipped one: default, quality, lossless, demo. Without "
        "it the policy registered for the rollout counts, else default.",
    ),
]


@contextmanager
def usable() -> Iterator[None]:
    """Print errors of unusable input on one line, and exit with code 2."""
    try:
        yield
    except (EvalsError, ClientError) as exc:
        typer.echo(f"error: {exc}", err=True)
        raise typer.Exit(ExitCode.UNUSABLE) from exc
