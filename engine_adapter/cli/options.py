"""Shared parts of the router's commands: arguments, error handling, the collector's client."""

import re
from contextlib import AbstractContextManager
from typing import Annotated, Final, NamedTuple

import typer

from collector.client import ClientError
from collector.client.command_line import one_line_errors
from engine_adapter.errors import AdapterError
from engine_adapter.routes import LAUNCH_NAME

FAILED: Final = 1
UNUSABLE: Final = 2
UNDECIDED: Final = 3

RolloutName = Annotated[str, typer.Argument(metavar="ROLLOUT", help="Name of the rollout.")]


def _launch_name(given: str | None) -> str | None:
    if given is not None and not re.fullmatch(LAUNCH_NAME, given):
        raise typer.BadParameter(f"{given!r}; wanted up to 100 letters, digits, and . : / _ -")
    return given


Launch = Annotated[
    str | None,
    typer.Option(
        callback=_launch_name,
        help="Name of this launch of servers that you started; use a new one after every restart.",
    ),
]


def usable() -> AbstractContextManager[None]:
    """Turn an `AdapterError` or `ClientError` into one line and exit code 2."""
    return one_line_errors(AdapterError, ClientError)


class UntilDecidedOptions(NamedTuple):
    """The options that go with `--until-decided`."""

    budget: str | None = None
    control: str | None = None
    rescore: str | None = None
    rescore_draft: str | None = None

    @property
    def given(self) -> str | None:
        """The first option that was given, by its name."""
        names = (name for name, value in self._asdict().items() if value is not None)
        return next((f"--{name.replace('_', '-')}" for name in names), None)
