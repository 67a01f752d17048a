"""`draftgate advise`: for which cohorts and loads speculation pays."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from collector.client import Client
from collector.client.command_line import Collector, Database
from collector.contract import InputBands
from evals import advice as advices
from evals.advice import report as advice_report
from evals.advice import router
from evals.cli.options import Rollout, usable

app = typer.Typer(add_completion=False)


@app.command()
def advise(
    rollout: Rollout,
    *,
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            help="Rollout of the same routes at another k, to split the cost of a step; "
            "repeatable.",
        ),
    ] = None,
    input_tokens: Annotated[
        str | None,
        typer.Option(
            help="Where bands of input tokens begin, such as 2000,8000. Default: the verdict's."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the advice as JSON.")] = False,
    routes: Annotated[
        Path | None, typer.Option("--routes", help="YAML file to write, with rules for a router.")
    ] = None,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Say where speculation pays: keep it, change k, or disable it, by cohort and load.

    The advice never goes beyond what the newest verdict on the rollout allows.

    Example: draftgate advise support-k4 --with support-k2 --routes routes.yaml
    """
    with usable():
        bands = None if input_tokens is None else _bands(input_tokens)
        with Client.opened(collector, database) as client:
            pairs = advices.load(client, rollout)
            other_pairs = {name: advices.load(client, name) for name in others or ()}
            newest = client.newest_verdict(rollout)
        verdict = None if newest is None else newest.verdict
        advice = advices.advise(rollout, pairs, other_pairs, verdict, bands)
        if routes is not None:
            router.write(routes, advice)
    if as_json:
        typer.echo(advice_report.to_json(advice))
    else:
        advice_report.print_advice(Console(), advice)


def _bands(text: str) -> InputBands:
    try:
        return InputBands([int(part) for part in text.split(",")])
    except ValueError as exc:
        message = f"{text!r}; wanted growing numbers above 0, such as 2000,8000"
        raise typer.BadParameter(message, param_hint="--input-tokens") from exc
