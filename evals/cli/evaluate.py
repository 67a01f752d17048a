"""`draftgate evaluate`: score what has no score yet."""

import sys

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from collector.client import Client
from evals.cli.options import Collector, Database, Rollout, open_client, usable
from evals.source import EvaluationCounts, evaluate_rollout

app = typer.Typer()


@app.command()
def evaluate(
    rollout: Rollout,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Score the answers of a rollout that have no score yet.

    Example: draftgate evaluate support-k4 --collector http://localhost:4318
    """
    with usable(), open_client(collector, database) as client:
        counts = _evaluate_with_bar(client, rollout)
        captures = client.about().captures_content if collector else None
    typer.echo(
        f"{rollout}: {counts.generations} answers, {counts.scored} scores posted, "
        f"{counts.unscored} could not be judged, {counts.kept} already scored, "
        f"{counts.failed} answers had failed"
    )
    if counts.without_text:
        typer.echo(f"note: {_why_no_text(counts, captures=captures)}", err=True)


def _why_no_text(counts: EvaluationCounts, *, captures: bool | None) -> str:
    """Say what keeps answers from being judged; `captures` is None without a running collector."""
    missing = f"{counts.without_text} of {counts.generations} answers have no text to judge"
    again = "then run again under a new rollout name"
    if captures is False:
        return (
            f"{missing}: the collector does not keep content; "
            f"start it with `draftgate serve --capture-content`, {again}"
        )
    return (
        f"{missing}: their spans carried none, or the collector did not keep content when they "
        f"arrived; send it, to `draftgate serve --capture-content`, {again}"
    )


def _evaluate_with_bar(client: Client, rollout: str) -> EvaluationCounts:
    bar = Progress(
        TextColumn("scoring"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("scoring", total=None)
        return evaluate_rollout(
            client, rollout, lambda done, total: bar.update(task, completed=done, total=total)
        )
