"""`draftgate history`: a rollout's verdicts over months."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from collector.client import Client
from collector.client.command_line import Collector, Database
from collector.contract import DatedVerdict, Outcome, to_document
from evals.cli.options import Rollout, usable
from evals.report.groups import grouped, serving_of
from evals.report.terminal import STYLES
from evals.report.visible_text import made_visible

app = typer.Typer(add_completion=False)

_COUNTS = " / ".join(one.value for one in Outcome)


@app.command()
def history(
    rollout: Rollout,
    *,
    candidate: Annotated[
        bool,
        typer.Option("--candidate", help="Add earlier rollouts of the same candidate."),
    ] = False,
    each: Annotated[
        bool, typer.Option("--each", help="A line for each verdict, not for each serving.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=1000, help="Maximum number of verdicts to read, newest first.")
    ] = 1000,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Print a rollout's verdicts by serving (engine, model, draft, k, fingerprint) and policy.

    Example: draftgate history support-k4 --candidate
    """
    with usable(), Client.opened(collector, database) as client:
        found = client.dated_verdicts(rollout, same_candidate=candidate, limit=limit)
    if as_json:
        typer.echo(json.dumps([to_document(one) for one in found], indent=2, ensure_ascii=False))
        return
    if not found:
        typer.echo(f"{rollout}: nobody has judged it yet")
        return
    found = made_visible(found)
    Console().print(_each(found) if each else _by_serving(found))


def _whole(header: str) -> Column:
    """Return a column that a narrow terminal does not shorten."""
    return Column(header, no_wrap=True, min_width=len(Outcome.INCONCLUSIVE.value))


def _by_serving(found: Sequence[DatedVerdict]) -> Table:
    table = Table("Judged", "Serving", "Policy", _COUNTS, _whole("Newest"))
    for group in grouped(found):
        first, last = _day(group.oldest), _day(group.newest)
        table.add_row(
            first if first == last else f"{first} to {last}",
            Text(serving_of(group.newest.candidate)),
            _policy(group.newest),
            " / ".join(str(group.outcomes.get(one, 0)) for one in Outcome),
            _outcome(group.newest),
        )
    return table


def _each(found: Sequence[DatedVerdict]) -> Table:
    table = Table("Judged (UTC)", "Rollout", _whole("Verdict"), "Pairs", "Policy", "Serving")
    for one in found:
        moment = datetime.fromtimestamp(one.posted_unix_ns / 1e9, UTC)
        table.add_row(
            f"{moment:%Y-%m-%d %H:%M}",
            Text(one.rollout),
            _outcome(one),
            f"{one.pairs:,}",
            _policy(one),
            Text(serving_of(one.candidate)),
        )
    return table


def _day(one: DatedVerdict) -> str:
    return f"{datetime.fromtimestamp(one.posted_unix_ns / 1e9, UTC):%Y-%m-%d}"


def _policy(one: DatedVerdict) -> Text:
    return Text(f"{one.policy_name} {one.policy_hash[:8]}")


def _outcome(one: DatedVerdict) -> Text:
    return Text(one.outcome.value, style=STYLES[one.outcome])
