"""Arguments, exit codes and helpers that the commands share."""

from contextlib import AbstractContextManager
from typing import Annotated

import typer

from collector.client import ClientError
from collector.client.command_line import one_line_errors
from evals.errors import EvalsError

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
        help="Policy file, or the name of a shipped one: default, quality, lossless, demo. "
        "Default: the rollout's registered policy, else default.",
    ),
]


RescoreDraft = Annotated[
    str | None,
    typer.Option(
        "--rescore-draft",
        help="The draft model, which shows faults of sampling that the tokens alone do not.",
    ),
]


def usable() -> AbstractContextManager[None]:
    """Print errors of unusable input on one line, and exit with code 2."""
    return one_line_errors(EvalsError, ClientError)
