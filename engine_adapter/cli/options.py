"""Shared parts of the commands: arguments, options, error handling."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Final, NamedTuple

import typer
from rich.console import Console

from collector.client import ClientError
from collector.client.command_line import one_line_errors
from engine_adapter.errors import AdapterError
from engine_adapter.routes import LAUNCH_NAME

FAILED: Final = 1
UNUSABLE: Final = 2
UNDECIDED: Final = 3
_INTERRUPTED: Final = 130

RolloutName = Annotated[str, typer.Argument(metavar="ROLLOUT", help="Name of the rollout.")]
CollectorUrl = Annotated[
    str | None,
    typer.Option(
        envvar="DRAFTGATE_COLLECTOR_URL", help="Collector to send to; overrides the file's."
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
        help="Name of this launch of servers that you started; use a new one after every restart.",
    ),
]


def usable() -> AbstractContextManager[None]:
    """Turn an `AdapterError` or `ClientError` into one line and exit code 2."""
    return one_line_errors(AdapterError, ClientError)


@contextmanager
def usable_run(console: Console, again: str | None) -> Iterator[None]:
    """Print errors and interruptions on one line, with the command that goes on, and exit."""
    try:
        yield
    except AdapterError as exc:
        console.print(f"error: {exc}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(UNUSABLE) from exc
    except KeyboardInterrupt as exc:
        words = "" if again is None else f"; {again} goes on"
        console.print(f"stopped; what was answered is stored{words}", markup=False, soft_wrap=True)
        raise typer.Exit(_INTERRUPTED) from exc


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
