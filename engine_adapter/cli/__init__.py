"""`draftgate run`, `check` and `sweep`: one file a command."""

import typer

from engine_adapter.cli.check import check
from engine_adapter.cli.run import replay_with_progress, run
from engine_adapter.cli.sweep import sweep

__all__ = ["app", "replay_with_progress"]

app = typer.Typer()
app.command()(run)
app.command()(check)
app.command()(sweep)
