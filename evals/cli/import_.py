"""`draftgate import`: convert a public data set to a workload."""

from pathlib import Path
from typing import Annotated

import typer

from evals.cli.options import usable
from evals.errors import ImportFileError
from evals.importing import file
from evals.importing.formats import FORMATS

app = typer.Typer(add_completion=False)

_SHOWN = 5


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="The data set's file: JSON lines, or a list.")],
    to: Annotated[Path, typer.Option(help="Workload to write.")],
    format_: Annotated[
        str | None, typer.Option("--format", help=f"One of {', '.join(sorted(FORMATS))}.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(help="File of accepted answers by id, as BFCL has.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Rows to take at most.")] = None,
    *,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave rows out that cannot be used.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write a public data set, or a log of OpenAI requests, as a workload.

    Example: draftgate import HumanEval.jsonl.gz --to prompts.jsonl
    """
    with usable():
        if format_ is not None and format_ not in FORMATS:
            raise ImportFileError(
                f"--format: {format_!r}; wanted one of {', '.join(sorted(FORMATS))}"
            )
        if to.exists() and not force:
            raise ImportFileError(f"{to}: exists; give --force to replace it")
        imported = file.read(
            source, format_=format_, answers=answers, limit=limit, skip_bad=skip_bad
        )
        file.write(imported.lines, to)
    for problem in imported.skipped[:_SHOWN]:
        typer.echo(f"left out: {problem}", err=True)
    more = f", {len(imported.skipped)} left out" if imported.skipped else ""
    typer.echo(f"{to}: {len(imported.lines)} prompts of {imported.format}{more}")
