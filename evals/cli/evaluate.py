"""`draftgate evaluate`: score the answers that have no scores yet."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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

from collector.client import Client
from collector.client.command_line import Collector, Database
from collector.nouns import counted
from evals.cli.options import usable
from evals.evaluation.evaluate import evaluate_rollout
from evals.evaluation.follow import Terms, follow_rollout
from evals.evaluation.scoring import Choice
from evals.evaluation.tally import EvaluationCounts
from evals.evaluators.judge import settings as judge
from evals.rollouts import wait_for

app = typer.Typer(add_completion=False)

_INTERRUPTED = 130


_VARIABLES = "\n\n".join(f"{name}: {text}" for name, text in judge.VARIABLES.items())


@app.command(epilog=f"Environment variables of judges:\n\n{_VARIABLES}")
def evaluate(  # noqa: PLR0913  # one parameter an option
    rollouts: Annotated[
        list[str], typer.Argument(metavar="ROLLOUT", help="Names of the rollouts.")
    ],
    evaluator: Annotated[
        list[str] | None,
        typer.Option(
            help="Evaluator to use; repeatable: reference, lexical-support, json-schema, "
            "format-drift, parity, groundedness-model, a judge, another package's "
            "metric such as ragas:Faithfulness or groundedness=ragas:Faithfulness, or "
            "one that a package adds. Default: all shipped ones."
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes that score; 1 scores in this one.")
    ] = 1,
    *,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Keep scoring new answers of one rollout until Ctrl-C or SIGTERM; followers "
            "share the work, and wait for a collector that restarts.",
        ),
    ] = False,
    lease: Annotated[
        float,
        typer.Option(
            min=1,
            max=3600,
            help="With --follow: seconds after which another follower may take over, if this one "
            "stops.",
        ),
    ] = 60.0,
    wait: Annotated[
        float,
        typer.Option(
            min=0,
            help="With --follow: seconds to wait for a rollout without answers; then exit code 2.",
        ),
    ] = 600.0,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Score the answers of rollouts that have no score yet.

    A second run continues where the first ended. An answer that was scored alone is scored again
    with its pair, if the evaluator uses pairs.

    Example: draftgate evaluate support-k4 --collector http://localhost:4318
    """
    if follow and len(rollouts) > 1:
        raise typer.BadParameter("follows one rollout", param_hint="--follow")
    choice = Choice(names=tuple(evaluator) if evaluator else None)
    with usable(), Client.opened(collector, database) as client:
        captures = client.about().captures_content if collector else None
        for rollout in rollouts:
            try:
                if follow:
                    with _ended_by_sigterm():
                        wait_for(client, rollout, wait, lambda why: typer.echo(why, err=True))
                        _follow(client, rollout, choice, Terms(workers=workers, ttl_s=lease))
                counts = _evaluate_with_bar(client, rollout, choice, workers)
            except KeyboardInterrupt:
                typer.echo(f"{rollout}: stopped; what was scored is posted", err=True)
                raise typer.Exit(0 if follow else _INTERRUPTED) from None
            _report(rollout, counts, captures=captures)


def _report(rollout: str, counts: EvaluationCounts, *, captures: bool | None) -> None:
    typer.echo(f"{rollout}: {_words(counts)}")
    if counts.without_text:
        typer.echo(f"note: {_why_no_text(counts, captures=captures)}", err=True)


def _words(counts: EvaluationCounts) -> str:
    return (
        f"{counted(counts.generations, 'answer')}, {counted(counts.scored, 'score')} posted, "
        f"{counts.unscored:,} could not be judged, {counts.kept:,} already scored, "
        f"{counted(counts.failed, 'failed answer')}{_words_on_judge(counts)}"
    )


def _words_on_judge(counts: EvaluationCounts) -> str:
    """Say which share of the new scores a cascade's judge settled, and what judges cost."""
    words = ""
    if counts.asked:
        words = f"; judge asked for {counts.asked} ({counts.asked / counts.scored:.1%})"
    if counts.audited:
        words += f", agrees on {counts.agreed} of {counts.audited} that were sure"
    if counts.cost_usd is not None:
        words += f"; cost US$ {counts.cost_usd:.4f}"
    return words


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C: release the lease, then end."""
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _follow(client: Client, rollout: str, choice: Choice, terms: Terms) -> None:
    """Follow the rollout until interrupted; print a line of counts from time to time."""
    typer.echo(f"{rollout}: following; Ctrl-C ends it", err=True)
    follow_rollout(
        client,
        rollout,
        lambda counts: typer.echo(f"{rollout}: {_words(counts)}"),
        choice=choice,
        terms=terms,
    )


def _why_no_text(counts: EvaluationCounts, *, captures: bool | None) -> str:
    """Explain why answers have no text; `captures` is None without a running collector."""
    missing = (
        f"{counts.without_text:,} of {counted(counts.generations, 'answer')} have no text to judge"
    )
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


def _evaluate_with_bar(
    client: Client, rollout: str, choice: Choice, workers: int
) -> EvaluationCounts:
    bar = Progress(
        TextColumn("scoring"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("scoring", total=None)
        return evaluate_rollout(
            client,
            rollout,
            lambda done, total: bar.update(task, completed=done, total=total),
            choice=choice,
            workers=workers,
        )
