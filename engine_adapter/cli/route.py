"""`draftgate route`: the router, until it is stopped."""

import asyncio
import logging
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from engine_adapter.cli import registration
from engine_adapter.cli.options import Launch, usable
from engine_adapter.errors import RoutesFileError
from engine_adapter.router import explanation, opening, routes_file
from engine_adapter.router.decision import Control
from engine_adapter.router.routes_file import Routes
from engine_adapter.router.server import run, serve
from engine_adapter.router.settings import RouterSettings
from engine_adapter.routes import Section

app = typer.Typer(add_completion=False)

_FIRST_ANSWER_S = 3.0


@app.command()
def route(
    file: Annotated[Path, typer.Argument(help="The routes file (YAML).")],
    collector: Annotated[
        str | None,
        typer.Option(
            envvar="DRAFTGATE_COLLECTOR_URL",
            help="Collector that holds the switch and takes the spans; overrides the file's.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port to listen on; overrides the file's. 0 takes a free one."
        ),
    ] = None,
    launch: Launch = None,
    finish_s: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Seconds that streams in flight get once it is told to stop; overrides the "
            "file's `limits.finish_s`.",
        ),
    ] = None,
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Describe where requests go, and exit.")
    ] = False,
) -> None:
    """Mirror, split or switch off a candidate's traffic, behind one OpenAI-compatible address.

    Point clients at http://HOST:PORT/v1. Ctrl-C ends it; streams in flight finish.

    Example: draftgate route routes.yaml --check && draftgate route routes.yaml
    """
    with usable():
        routes = _overridden(routes_file.read(file), collector, port, launch, finish_s)
        policy = registration.beside(file, routes.policy)
        routes = routes.model_copy(update={"policy": policy})
        registration.require_usable(policy)
        settings = opening.settings_of(routes)
        for line in explanation.describe_routes(routes):
            typer.echo(line)
        if not check:
            logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
            _serve(routes, settings)


def _overridden(
    routes: Routes,
    collector: str | None,
    port: int | None,
    launch: str | None,
    finish_s: float | None,
) -> Routes:
    update: dict[str, Section] = {}
    if launch is not None:
        update["upstreams"] = routes.upstreams.launched(launch)
    if collector is not None:
        update["collector"] = routes.collector.model_copy(update={"url": collector})
    if port is not None:
        update["listen"] = routes.listen.model_copy(update={"port": port})
    if finish_s is not None:
        update["limits"] = routes.limits.model_copy(update={"finish_s": finish_s})
    return routes.model_copy(update=update)


def _serve(routes: Routes, settings: RouterSettings) -> None:
    confirm = registration.confirmed_elsewhere(routes.collector.url)
    register = partial(registration.register, rollout=routes.rollout, policy=routes.policy)
    with opening.follower_of(routes, confirm=confirm, register=register) as follower:
        if not follower.wait_for_answer(_FIRST_ANSWER_S):
            typer.echo(f"the collector does not answer yet: {follower.trouble or 'still waiting'}")
        for line in explanation.describe_state(follower.known, routes):
            typer.echo(line)
        control = opening.control_of(routes, follower)
        try:
            run(_until_stopped(settings, control, _listening))
        except OSError as exc:
            raise RoutesFileError(
                f"listen: {settings.host}:{settings.port} cannot be listened on "
                f"({exc.strerror or exc}); choose another with `listen.port` or --port"
            ) from exc


def _listening(url: str) -> None:
    typer.echo(f"listening at {url}/v1; state at {url}/router/state")


async def _until_stopped(
    settings: RouterSettings, control: Control, ready: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM."""
    loop, task = (
        asyncio.get_running_loop(),
        asyncio.create_task(serve(settings, control, ready=ready)),
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
