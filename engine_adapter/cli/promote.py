"""`draftgate promote`: take the next step of a rollout's ramp."""

from pathlib import Path
from typing import Annotated

import typer

from collector.client import Client
from collector.client.command_line import Collector, Database
from engine_adapter.cli import registration
from engine_adapter.cli.options import FAILED, UNUSABLE, RolloutName, usable
from engine_adapter.errors import PromotionError, RoutesFileError
from engine_adapter.router import ramp, routes_file

app = typer.Typer(add_completion=False)


@app.command()
def promote(  # noqa: PLR0913  # one argument an option
    rollout: RolloutName,
    *,
    routes: Annotated[
        Path | None,
        typer.Option(
            help="Routes file with `ramp.steps`. Default: steps of 1, 5, 25, 50 and 100 %."
        ),
    ] = None,
    back_to: Annotated[
        float | None,
        typer.Option(
            min=0, max=100, help="Go back to this percentage, which may be 0; needs no verdict."
        ),
    ] = None,
    reason: Annotated[
        str | None, typer.Option(help="Why it goes back, for the log; required with --back-to.")
    ] = None,
    rescore: Annotated[
        str | None,
        typer.Option(
            "--rescore",
            help="The baseline's model, a folder or transformers name, if the verdict was "
            "made with it.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; say what would be done.")
    ] = False,
    collector: Collector = None,
    database: Database = "sqlite:///draftgate.db",
) -> None:
    """Take the ramp's next step, which needs a newer passing verdict.

    The verdict is derived again first, under the registered policy. The first step needs none. Exit
    0: taken, 1: not allowed now, 2: unusable.

    Example: draftgate promote support-k4 --routes routes.yaml
    """
    if (back_to is None) != (reason is None):
        lacking = "--reason" if reason is None else "--back-to"
        typer.echo(f"error: going back needs {lacking}, too", err=True)
        raise typer.Exit(UNUSABLE)
    with usable(), Client.opened(collector, database) as client:
        steps = _steps(rollout, routes)
        progress = ramp.progress(client, rollout)
        try:
            if back_to is not None and reason is not None:
                change = ramp.step_back(rollout, steps, progress, percent=back_to, reason=reason)
            else:
                change = ramp.next_step(rollout, steps, progress)
                if progress.verdict is not None:
                    why_not = registration.why_not(client, progress.verdict, rescore)
                    ramp.require_confirmed(change, why_not)
        except PromotionError as exc:
            typer.echo(f"error: {exc}", err=True)
            raise typer.Exit(FAILED) from exc
        if not dry_run:
            client.take_step(rollout, change)
    before = "not begun" if progress.step is None else f"{progress.step.percent:g} %"
    would = "would stand" if dry_run else "stands"
    typer.echo(f"{rollout}: {would} at {change.percent:g} % (before: {before}): {change.reason}")


def _steps(rollout: str, file: Path | None) -> tuple[float, ...]:
    if file is None:
        return ramp.STEPS
    routes = routes_file.read(file)
    if routes.rollout != rollout:
        raise RoutesFileError(f"{file}: rollout: routes {routes.rollout!r}, not {rollout!r}")
    if routes.ramp is None:
        raise RoutesFileError(f"{file}: ramp: required key is missing; `ramp: {{}}` has the steps")
    return routes.ramp.steps
