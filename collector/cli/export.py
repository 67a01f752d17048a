"""`draftgate export`."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from collector.client import Client
from collector.client.command_line import Collector, Database, one_line_errors
from collector.errors import CollectorError
from collector.nouns import counted

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.command()
def export(  # one parameter per option
    rollout: Annotated[str, typer.Argument(help="Name of the rollout.")],
    to: Annotated[
        Path,
        typer.Option(
            help="File to write: .parquet has a column per field, .jsonl the API's objects."
        ),
    ],
    *,
    content: Annotated[
        bool,
        typer.Option(
            "--content",
            help="Include prompts, answers, passages and references; needs the scope content.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Write a rollout's generations with their scores to a file.

    They are written in the order of arrival. The file appears only once it is complete.

    Example: draftgate export support-k4 --to support-k4.parquet
    """
    with one_line_errors(CollectorError), Client.opened(collector, database) as client:
        written = _with_bar(client, rollout, to, content=content, force=force)
    typer.echo(f"{rollout}: {counted(written, 'generation')} written to {to}")


def _with_bar(client: Client, rollout: str, to: Path, *, content: bool, force: bool) -> int:
    found = (one for one in client.rollouts() if one.rollout == rollout)
    total = sum(one.baseline_generations + one.candidate_generations for one in found)
    bar = Progress(
        TextColumn("exporting"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    # Imported once the client is open, so that a missing `collector` extra, which brings PyArrow
    # too, is named before PyArrow.
    from collector.client import export_file  # noqa: PLC0415

    with bar:
        task = bar.add_task("exporting", total=total or None)
        return export_file.write(
            client,
            rollout,
            to,
            content=content,
            force=force,
            progress=lambda written: bar.update(task, completed=written),
        )
