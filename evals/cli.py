"""The commands `evaluate`, `gate`, `verify` and `advise`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from collector.client import Client, ClientError
from collector.contract import Outcome
from evals import advice as advices
from evals import bundle as bundles
from evals import policy as policies
from evals.advice import report as advice_report
from evals.advice import router
from evals.errors import EvalsError
from evals.gate import hypothesis, plan
from evals.pairs_table import from_table
from evals.report import print_verdict
from evals.report_formats import FORMATS
from evals.source import EvaluationCounts, evaluate_rollout, load_pairs

app = typer.Typer(no_args_is_help=True, add_completion=False)


class Format(StrEnum):
    """How a verdict is printed."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    GITHUB = "github"


class ExitCode(IntEnum):
    """What `gate` tells a script."""

    PASS = 0
    FAIL = 1
    UNUSABLE = 2
    INCONCLUSIVE = 3


_EXIT = {
    Outcome.PASS: ExitCode.PASS,
    Outcome.FAIL: ExitCode.FAIL,
    Outcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
}

Rollout = Annotated[str, typer.Argument(help="Name of the rollout.")]
Collector = Annotated[
    str | None,
    typer.Option(
        envvar="DRAFTGATE_COLLECTOR_URL", help="Collector to ask, such as http://localhost:4318."
    ),
]
Database = Annotated[
    str,
    typer.Option(
        envvar="DRAFTGATE_DATABASE_URL", help="Database to open, where no collector is given."
    ),
]
PolicyFile = Annotated[
    str, typer.Option("--policy", help="Policy file, or the name of a shipped one: default, demo.")
]


@app.command()
def evaluate(
    rollout: Rollout,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Score the answers of a rollout that have no score yet.

    Example: draftgate evaluate support-k4 --collector http://localhost:4318
    """
    with _usable(), _open(collector, database) as client:
        counts = _evaluate_with_bar(client, rollout)
        captures = client.about().captures_content if collector else None
    typer.echo(
        f"{rollout}: {counts.generations} answers, {counts.scored} scores posted, "
        f"{counts.unscored} could not be judged, {counts.kept} already scored, "
        f"{counts.failed} answers had failed"
    )
    if counts.without_text:
        typer.echo(f"note: {_why_no_text(counts, captures=captures)}", err=True)


@app.command()
def gate(  # noqa: PLR0913  # one argument an option
    rollout: Rollout,
    *,
    policy: PolicyFile = "default",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdict as JSON: --format json.")
    ] = False,
    form: Annotated[
        Format, typer.Option("--format", help="How to print the verdict.")
    ] = Format.TEXT,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what would be tested, and decide nothing.")
    ] = False,
    control: Annotated[
        str | None,
        typer.Option("--control", help="A/A rollout, in which no difference may be found."),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", help="Zip to write, with the verdict and all it was made of."),
    ] = None,
    post: Annotated[
        bool, typer.Option("--post/--no-post", help="Store the verdict in the collector.")
    ] = True,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Decide whether a rollout may be released: exit 0 pass, 1 fail, 2 unusable, 3 inconclusive.

    Example: draftgate gate support-k4 --policy policy.yaml
    """
    with _usable():
        text = policies.named_text(policy)
        chosen = policies.parse(text, policy)
        with _open(collector, database) as client:
            table = load_pairs(client, rollout)
            if explain:
                for cell in plan(from_table(table), chosen):
                    typer.echo(hypothesis(cell))
                return
            equal = None if control is None else load_pairs(client, control)
            inputs = bundles.Inputs(rollout, text, table, equal)
            verdict = bundles.judge(inputs, policy)
            if bundle is not None:
                bundles.write(bundle, inputs, verdict)
            if post:
                client.post_verdict(verdict)
    if as_json:
        form = Format.JSON
    if form is Format.TEXT:
        print_verdict(Console(), verdict)
    else:
        typer.echo(FORMATS[form.value](verdict))
    raise typer.Exit(_EXIT[verdict.outcome])


@app.command()
def verify(
    bundle: Annotated[Path, typer.Argument(help="Zip that `gate --bundle` wrote.")],
) -> None:
    """Judge a bundle again, without a collector: exit 0 same verdict, 1 it differs, 2 unusable.

    Example: draftgate verify support-k4.zip
    """
    with _usable():
        differing = bundles.verify(bundle)
    for line in differing:
        typer.echo(line)
    if differing:
        typer.echo(f"error: {bundle}: judged again, the verdict differs", err=True)
        raise typer.Exit(ExitCode.FAIL)
    typer.echo(f"{bundle}: the same verdict, byte for byte")


@app.command()
def advise(
    rollout: Rollout,
    *,
    others: Annotated[
        list[str] | None,
        typer.Option("--with", help="Rollout of the same routes at another k; repeatable."),
    ] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", help="Policy whose prices tell what drafts cost.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the advice as JSON.")] = False,
    routes: Annotated[
        Path | None, typer.Option("--routes", help="YAML file to write, with rules for a router.")
    ] = None,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Say where speculation pays: keep it, change k, or disable it, by cohort and load.

    Example: draftgate advise support-k4 --with support-k2 --routes routes.yaml
    """
    with _usable():
        prices = None if policy is None else policies.named(policy).prices
        with _open(collector, database) as client:
            pairs = advices.load(client, rollout)
            beside = {name: advices.load(client, name) for name in others or ()}
        advice = advices.advise(rollout, pairs, beside, prices)
        if routes is not None:
            router.write(routes, advice)
    if as_json:
        typer.echo(advice_report.to_json(advice))
    else:
        advice_report.print_advice(Console(), advice)


@contextmanager
def _usable() -> Iterator[None]:
    """Turn what cannot be used into one line and exit code 2."""
    try:
        yield
    except (EvalsError, ClientError) as exc:
        typer.echo(f"error: {exc}", err=True)
        raise typer.Exit(ExitCode.UNUSABLE) from exc


def _open(collector: str | None, database: str) -> Client:
    return Client.from_environment(collector) if collector else Client.local(database)


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
