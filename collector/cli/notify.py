"""`draftgate notify`."""

import asyncio
import time
from pathlib import Path
from typing import Annotated

import httpx
import typer

from collector.cli.options import usable
from collector.contract import Notification, NotificationType
from collector.errors import SettingsError
from collector.notify import targets
from collector.notify.delivery import deliver
from collector.notify.targets import Target
from collector.store import notifications

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Manage notifications.")


@app.callback()
def notify() -> None:
    """Manage notifications."""


@app.command("test")
def send_test(
    name: Annotated[
        str | None, typer.Argument(help="Name of one target. Default: all of the file.")
    ] = None,
    *,
    file: Annotated[
        Path, typer.Option("--file", envvar="DRAFTGATE_NOTIFY", help="File of the targets (YAML).")
    ],
) -> None:
    """Send a test notification: exit 0 if every target took it, 1 if not, 2 for an unusable file.

    Example: draftgate notify test --file notify.yaml
    """
    with usable():
        found = [one for one in targets.read(file) if name in (None, one.name)]
        if not found:
            raise SettingsError(f"{file}: has no target {name!r}")
    answers = asyncio.run(_send(found))
    for target, why_not in zip(found, answers, strict=True):
        signed = "signed" if target.secret is not None else "not signed"
        took = "accepted it" if why_not is None else f"did not accept it: {why_not}"
        typer.echo(f"{target.name} ({target.form}, {signed}) {took}")
    if any(answers):
        raise typer.Exit(1)


async def _send(found: list[Target]) -> list[str | None]:
    made = Notification(
        id=notifications.new_id(),
        type=NotificationType.TEST,
        rollout="test",
        time_unix_ns=time.time_ns(),
        before=None,
        after="sent",
        summary="A test of draftgate notify: nothing happened.",
    )
    async with httpx.AsyncClient() as client:
        return list(await asyncio.gather(*(deliver(client, one, made) for one in found)))
