"""`draftgate unpaired`."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from collector.client import Client
from collector.client.command_line import Collector, Database, one_line_errors
from collector.contract import Unpaired, to_document
from collector.errors import CollectorError

app = typer.Typer(no_args_is_help=False, add_completion=False)


@app.command()
def unpaired(
    rollout: Annotated[
        str | None, typer.Argument(help="Name of a rollout. Default: all generations.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the groups as JSON.")] = False,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """List generations that do not pair, and why.

    Only the newest 20,000 generations are checked.

    Example: draftgate unpaired --collector http://localhost:4318
    """
    with one_line_errors(CollectorError), Client.opened(collector, database) as client:
        groups = client.unpaired(rollout)
    if as_json:
        typer.echo(json.dumps([to_document(group) for group in groups], indent=2))
    elif not groups:
        typer.echo("all of the newest generations are paired")
    else:
        Console().print(_table(groups))


def _table(groups: tuple[Unpaired, ...]) -> Table:
    table = Table(title="Unpaired generations", title_justify="left")
    for name in ("Generations", "Rollout", "Arm", "Sender", "Why", "What to do", "A trace"):
        table.add_column(name, justify="right" if name == "Generations" else "left")
    for group in groups:
        sender = " ".join(filter(None, (group.service_name, group.provider, group.dialect)))
        table.add_row(
            f"{group.generations:,}",
            escape(group.rollout or "–"),
            group.arm.value if group.arm is not None else "–",
            escape(sender),
            group.why,
            group.reason.fix,
            group.trace_id,
        )
    return table
