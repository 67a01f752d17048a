"""`draftgate run`, `check`, `sweep`, and the router's commands: one file a command."""

import typer

from engine_adapter.cli.check import check
from engine_adapter.cli.drill import drill
from engine_adapter.cli.promote import promote
from engine_adapter.cli.route import route
from engine_adapter.cli.run import replay_with_progress, run
from engine_adapter.cli.sweep import sweep
from engine_adapter.cli.switch import switch

__all__ = ["app", "replay_with_progress"]

app = typer.Typer()
for _command in (run, check, sweep, route, switch, promote, drill):
    app.command()(_command)
