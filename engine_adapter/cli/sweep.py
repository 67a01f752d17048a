"""`draftgate sweep`: run one rollout per draft length and load."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from collector.nouns import counted
from engine_adapter.cli import registration
from engine_adapter.cli.options import CollectorUrl, usable_run
from engine_adapter.cli.run import read_overridden, terminated_as_interrupted
from engine_adapter.run import sweep as sweeps
from engine_adapter.run import sweep_table
from engine_adapter.run.replay import RunProgress
from engine_adapter.run.rollout_file import Rollout
from engine_adapter.run.sweep import Configuration, Plan
from engine_adapter.run.sweep_table import Row

app = typer.Typer(add_completion=False)


@app.command()
def sweep(  # one argument per option
    file: Annotated[Path, typer.Argument(help="The rollout file (YAML).")],
    k: Annotated[
        str | None,
        typer.Option(
            help="Draft tokens per verify step, separated by commas, such as 0,2,4; 0 is an A/A "
            "control. Default: the file's candidate as it is."
        ),
    ] = None,
    concurrency: Annotated[
        str | None,
        typer.Option(
            help="Requests in flight at each arm, separated by commas, such as 1,4,16. Default: 1."
        ),
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(
            help="Search, from the lowest to the highest as 1,64, the greatest rate of "
            "requests a second at which the policy's `goodput.share` holds. Not with "
            "--k, --concurrency or --url."
        ),
    ] = None,
    url: Annotated[
        list[str] | None,
        typer.Option(
            help="A candidate that is served already, such as 4=http://host:8000/v1; once "
            "for each k."
        ),
    ] = None,
    collector: CollectorUrl = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Run a rollout for every k, every number of requests in flight, or both.

    Each combination is stored under its own name, such as NAME-k4-c8, or NAME-c8 without --k.

    The file's `policy`, or default, is registered for each before its first request.
    If it is stopped, run it again to continue.

    Example: draftgate sweep rollout.yaml --concurrency 1,8,32
    """
    errors = Console(stderr=True)
    say = partial(errors.print, markup=False, soft_wrap=True)
    with usable_run(errors, "the same command"):
        rollout = read_overridden(file, collector)
        begin = _registering(file, rollout, say)
        if rates is not None:
            given = any((k, concurrency, url))
            _search(file, rollout, rates, begin=begin, say=say, given=given, as_json=as_json)
            return
        ks = [None] if k is None else _numbers(k, "--k", least=0)
        plan = Plan(ks, _numbers(concurrency or "1", "--concurrency", least=1), _urls(url))
        with terminated_as_interrupted():
            rows = _rows(file, rollout, plan, begin, errors)
    if as_json:
        typer.echo(json.dumps([row._asdict() for row in rows]))
    else:
        _print(rows, rollout.collector.url)


def _registering(file: Path, rollout: Rollout, say: Callable[[str], None]) -> sweeps.Begin:
    """Return a function that registers the file's policy for a configuration, and says so."""
    policy, url = registration.beside(file, rollout.policy), rollout.collector.url

    def begin(made: Configuration) -> None:
        say(registration.register_for_run(url, made.rollout.rollout, policy, rollout.change))

    return begin


def _search(
    file: Path,
    rollout: Rollout,
    rates: str,
    *,
    begin: sweeps.Begin,
    say: Callable[[str], None],
    given: bool,
    as_json: bool,
) -> None:
    """Search each arm's greatest rate that holds, and print it."""
    if given:
        raise typer.BadParameter(
            "stands without --k, --concurrency and --url", param_hint="--rates"
        )
    # Imported here: it imports `evals`, which takes a second.
    from engine_adapter.cli import rate_search  # noqa: PLC0415

    with terminated_as_interrupted():
        found = rate_search.search(file, rollout, rate_search.ends(rates), begin=begin, say=say)
    rate_search.print_found(found, as_json=as_json)


def _rows(
    file: Path, rollout: Rollout, plan: Plan, begin: sweeps.Begin, console: Console
) -> list[Row]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("sweep", total=None)

        def show(configuration: Configuration, step: RunProgress) -> None:
            text = f"{rollout.rollout} {configuration.label}"
            bar.update(task, completed=step.done, total=step.total, description=text)

        made = list(sweeps.run(file, rollout, plan, begin=begin, show=show))
    return [sweep_table.row(configuration, rollout.collector.url) for configuration in made]


def _numbers(text: str, option: str, *, least: int) -> list[int]:
    if not re.fullmatch(r"\d{1,4}(,\d{1,4})*", text):
        raise typer.BadParameter(f"{text!r}; wanted numbers such as 1,4,16", param_hint=option)
    numbers = list(dict.fromkeys(int(part) for part in text.split(",")))
    if min(numbers) < least:
        raise typer.BadParameter(f"{text!r}; wanted numbers from {least} on", param_hint=option)
    return numbers


def _urls(given: list[str] | None) -> dict[int, str]:
    urls = {}
    for text in given or ():
        number, _, url = text.partition("=")
        if not number.isdigit() or not re.match(r"https?://[^/\s]+", url):
            raise typer.BadParameter(f"{text!r}; wanted K=http://…", param_hint="--url")
        urls[int(number)] = url
    return urls


def _print(rows: list[Row], collector: str) -> None:
    table = Table(
        "rollout",
        "k",
        "in flight",
        "end to end ÷ baseline",
        "TTFT ÷ baseline",
        "acceptance",
        "tokens per step",
        "draft tokens per step",
    )
    for row in rows:
        table.add_row(
            row.rollout,
            "–" if row.k is None else str(row.k),
            str(row.concurrency),
            _shown(row.e2e_ratio, "×"),
            _shown(row.ttft_ratio, "×"),
            _shown(row.acceptance_rate, ""),
            _shown(row.acceptance_length, ""),
            _shown(row.drafts_per_step, ""),
        )
    console = Console(soft_wrap=True)
    console.print(table)
    failed = sum(row.failed for row in rows)
    if failed:
        console.print(f"{counted(failed, 'request')} failed")
    for command in _following(rows):
        console.print(f"Next: draftgate {command} --collector {collector}", markup=False)


def _following(rows: list[Row]) -> list[str]:
    """Return the commands that read all of the sweep."""
    loads = " ".join(row.rollout for row in rows if row.k is None)
    if loads:
        return [f"evaluate {loads}", f"gate {loads}"]
    first, *others = [row.rollout for row in rows if row.k] or [""]
    return [" ".join([f"advise {first}", *(f"--with {name}" for name in others)])] if others else []


def _shown(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{value:.2f}{unit}"
