"""`draftgate switch`: set or show whether a rollout's candidate may answer."""

import json
from datetime import UTC, datetime
from typing import Annotated

import typer

from collector.client import Client
from collector.client.command_line import Collector, Database
from collector.contract import Switch, SwitchState, to_document
from engine_adapter.cli.options import UNUSABLE, RolloutName, usable

app = typer.Typer(add_completion=False)

_SHOWN = 10


@app.command()
def switch(
    rollout: RolloutName,
    state: Annotated[
        Switch | None,
        typer.Argument(help="State to set. Default: show the switch and its newest ten events."),
    ] = None,
    reason: Annotated[
        str | None, typer.Option(help="Why, for the audit log; required to set it.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the log as JSON.")] = False,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Set a rollout's switch, or show it with its audit log, newest first.

    Off, every router that follows the collector sends all to the baseline, and mirrors nothing.
    Setting it needs a key with the scope admin.

    Example: draftgate switch support-k4 off --reason "p95 of rag doubled"
    """
    if (state is None) != (reason is None):
        lacking = "--reason, for the audit log" if reason is None else "`on` or `off`"
        typer.echo(f"error: setting a switch needs {lacking}", err=True)
        raise typer.Exit(UNUSABLE)
    with usable(), Client.opened(collector, database) as client:
        if state is not None and reason is not None:
            client.set_switch(rollout, state, reason=reason)
        log = client.switch(rollout)
    if as_json:
        typer.echo(json.dumps({"rollout": rollout, "log": [to_document(e) for e in log]}))
        return
    if not log:
        typer.echo(
            f"{rollout}: never set; routers send all requests to the baseline until it is on"
        )
    for number, event in enumerate(log[: 1 if state else _SHOWN]):
        typer.echo(_line(event) if number else f"{rollout}: {_line(event)}")


def _line(event: SwitchState) -> str:
    at = datetime.fromtimestamp(event.time_unix_ns / 1e9, UTC)
    return f"{event.state}  {at:%Y-%m-%d %H:%M:%S} UTC  {event.who}: {event.reason}"
