"""`draftgate run` and `check`: one file a command."""

import typer

from engine_adapter.cli.check import check
from engine_adapter.cli.run import replay_with_progress, run

__all__ = ["app", "replay_with_progress"]

app = typer.Typer()
app.command()(run)
app.command()(check)
