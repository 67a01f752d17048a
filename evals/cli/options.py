"""Arguments, exit codes and helpers that the commands share."""

from contextlib import AbstractContextManager
from enum import IntEnum
from typing import Annotated

import typer

from collector.client import ClientError
from collector.client.command_line import one_line_errors
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


def usable() -> AbstractContextManager[None]:
    """Print errors of unusable input on one line, and exit with code 2."""
    return one_line_errors(EvalsError, ClientError)
