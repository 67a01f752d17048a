"""`draftgate policy`."""

from pathlib import Path
from typing import Annotated

import typer

from evals import policy as policies
from evals.exit_codes import ExitCode
from evals.policy.lint import problem

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def policy() -> None:
    """Manage policy files."""


@app.command()
def lint(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Policy files.")],
) -> None:
    """Check policy files as the gate reads them: exit 0 if it can use all of them, 2 if not.

    Says the first problem of each file, with its line and key, and the hash of each file that is
    usable.

    Example: draftgate policy lint policy.yaml
    """
    unusable = False
    for file in files:
        found = problem(file)
        if found is None:
            typer.echo(f"{file}: usable, hash {policies.load(file).policy_hash[:12]}")
        else:
            typer.echo(f"error: {found}", err=True)
            unusable = True
    if unusable:
        raise typer.Exit(ExitCode.UNUSABLE)
