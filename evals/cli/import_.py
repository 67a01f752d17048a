"""`draftgate import`: a public data set to a workload, or others' scores to a rollout."""

import time
from pathlib import Path
from typing import Annotated

import typer

from collector.client import Client
from collector.client.command_line import Collector, Database
from collector.contract import Change
from collector.nouns import counted
from evals.cli.options import usable
from evals.errors import ImportFileError
from evals.importing import file, scores
from evals.importing.formats import FORMATS

app = typer.Typer(add_completion=False)

_SHOWN = 5
_OF_WORKLOADS, _OF_SCORES = sorted(FORMATS), sorted(scores.FORMATS)


@app.command("import")
def import_(  # noqa: PLR0913  # one argument an option
    source: Annotated[
        Path,
        typer.Argument(help="The data set's file, or the baseline's: JSON lines, or a list."),
    ],
    to: Annotated[
        Path | None, typer.Option(help="Workload to write; this or --rollout is required.")
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=f"Format of a data set: {', '.join(_OF_WORKLOADS)}; or of scores: "
            f"{', '.join(_OF_SCORES)}. Default: by the first row's keys.",
        ),
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(help="File of accepted answers by id, as BFCL has them.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of rows to take. Default: all.")
    ] = None,
    *,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip unusable rows, and say which.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing workload.")] = False,
    rollout: Annotated[
        str | None, typer.Option(help="Rollout under which to store both arms' scores.")
    ] = None,
    candidate: Annotated[
        Path | None,
        typer.Option(
            help="With --rollout, the candidate's file of the same cases; the argument is "
            "the baseline's."
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="Metric to take, if the file has several (lm-eval, InvarLock)."),
    ] = None,
    filter_: Annotated[
        str | None,
        typer.Option(
            "--filter", help="Filter of lm-eval's samples to take, if the file has several."
        ),
    ] = None,
    evaluator_version: Annotated[
        str | None, typer.Option(help="The evaluator's version, if no file beside says it.")
    ] = None,
    change: Annotated[
        Change | None, typer.Option(help="What the candidate changes, as in a rollout file.")
    ] = None,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Write a public data set as a workload, or store another evaluator's scores of both arms.

    An unusable row stops it before anything is written. Scores go to the collector or database.

    Example: draftgate import HumanEval.jsonl.gz --to prompts.jsonl
    """
    with usable():
        if (to is None) == (rollout is None):
            raise ImportFileError("give either --to, for a workload, or --rollout, for scores")
        if to is not None:
            _check(to, format_, force=force)
            imported = file.read(
                source, format_=format_, answers=answers, limit=limit, skip_bad=skip_bad
            )
            file.write(imported.lines, to)
            _say(to, imported)
        elif rollout is not None:
            choice = scores.ImportChoice(format_, metric, filter_, evaluator_version)
            arms = _arms(source, candidate, choice)
            with Client.opened(collector, database) as client:
                scores.store(client, rollout, arms, change=change, now_unix_ns=time.time_ns())
            typer.echo(_stored(rollout, arms))


def _check(to: Path, format_: str | None, *, force: bool) -> None:
    if format_ is not None and format_ not in FORMATS:
        raise ImportFileError(f"--format: {format_!r}; wanted one of {', '.join(_OF_WORKLOADS)}")
    if to.exists() and not force:
        raise ImportFileError(f"{to}: exists; give --force to replace it")


def _arms(source: Path, candidate: Path | None, choice: scores.ImportChoice) -> scores.Arms:
    if candidate is None:
        raise ImportFileError("--rollout: give the candidate's file too, --candidate FILE")
    if choice.format is not None and choice.format not in scores.FORMATS:
        raise ImportFileError(f"--format: {choice.format!r}; wanted one of {', '.join(_OF_SCORES)}")
    return scores.read(source, candidate, choice)


def _say(to: Path, imported: file.Imported) -> None:
    for problem in imported.skipped[:_SHOWN]:
        typer.echo(f"left out: {problem}", err=True)
    more = f", {len(imported.skipped)} left out" if imported.skipped else ""
    typer.echo(f"{to}: {counted(len(imported.lines), 'prompt')} of {imported.format}{more}")


def _stored(rollout: str, arms: scores.Arms) -> str:
    found = arms.baseline
    unscored = sum(case.value is None for arm in arms[:2] for case in arm.cases)
    alone = len(arms.baseline.cases) + len(arms.candidate.cases) - 2 * arms.paired
    return (
        f"{rollout}: {counted(arms.paired, 'pair')} scored by {found.evaluator} {found.version} on "
        f"{found.cases[0].metric}, {counted(alone, 'case')} of one arm alone, {unscored} unscored"
    )
