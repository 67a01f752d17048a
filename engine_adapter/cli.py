"""`draftgate run`: replay a workload on a baseline and a candidate route."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from collector.contract import Generation
from engine_adapter import rollout_file
from engine_adapter.engines import EngineOpener
from engine_adapter.errors import AdapterError
from engine_adapter.replay import RunCounts, replay
from engine_adapter.rollout_file import CollectorAddress, Rollout

app = typer.Typer()


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="The rollout file (YAML).")],
    collector: Annotated[
        str | None,
        typer.Option(
            envvar="DRAFTGATE_COLLECTOR_URL", help="Collector to send to; wins over the file's."
        ),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Replay a workload on a baseline and a candidate route, and send each generation as a span.

    Example: draftgate run rollout.yaml --collector http://localhost:4318
    """
    errors = Console(stderr=True)
    try:
        rollout = rollout_file.read(file)
        if collector is not None:
            address = CollectorAddress(url=collector)
            rollout = rollout.model_copy(update={"collector": address})
        counts = replay_with_progress(rollout, errors)
    except AdapterError as exc:
        errors.print(f"error: {exc}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from exc
    if as_json:
        typer.echo(json.dumps({"rollout": rollout.rollout} | counts._asdict()))
    else:
        typer.echo(
            f"{rollout.rollout}: {counts.generations} generations sent to "
            f"{rollout.collector.url}, {counts.failed} of them failed. "
            f"Next: draftgate evaluate {rollout.rollout}"
        )


def replay_with_progress(
    rollout: Rollout, console: Console, *, opener: EngineOpener | None = None
) -> RunCounts:
    """Replay with a progress bar that shows each arm's cohort as it answers."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(f"{rollout.rollout}: loading models", total=None)

        def show(generation: Generation, total: int) -> None:
            text = f"{rollout.rollout}: {generation.arm} answers {generation.cohort}"
            bar.update(task, advance=1, total=total, description=text)

        return replay(rollout, opener=opener, progress=show)
