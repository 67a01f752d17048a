"""The `dashboard` command."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from collector.client import Client, ClientError
from dashboard import server, source
from dashboard.errors import DashboardError

app = typer.Typer(add_completion=False)


@app.command()
def dashboard(
    collector: Annotated[
        str | None,
        typer.Option(
            envvar=source.URL_VARIABLE, help="Collector to ask, with the key in DRAFTGATE_API_KEY."
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            envvar=source.DATABASE_VARIABLE,
            help=f"Open this database in-process instead (default: {source.DEFAULT_DATABASE}).",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; one that other machines reach needs sign-in, else "
            "exit code 2."
        ),
    ] = server.DEFAULT_HOST,
    port: Annotated[
        int, typer.Option(min=1, max=65_535, help="Port to listen on.")
    ] = server.DEFAULT_PORT,
) -> None:
    """Serve the dashboard until Ctrl-C.

    Example: draftgate dashboard --collector http://localhost:4318
    """
    console = Console(stderr=True, highlight=False)
    where = source.Source(collector, database or source.DEFAULT_DATABASE)
    _warn_if_silent(where, console)
    with _stoppable():  # including the start, which takes seconds
        try:
            running = server.start(
                collector_url=collector,
                database_url=None if collector else where.database_url,
                host=host,
                port=port,
            )
        except DashboardError as error:
            console.print(f"error: {error}", markup=False, soft_wrap=True)
            raise typer.Exit(2) from error
        console.print(
            f"Dashboard of {where.address}: {running.url} (Ctrl-C stops it)", markup=False
        )
        with running:
            status = running.wait()
            raise typer.Exit(1 if status else 0)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Leave the block on Ctrl-C or SIGTERM, so that no server keeps running."""

    def leave(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


def _warn_if_silent(where: source.Source, console: Console) -> None:
    """Warn if the collector does not answer; it may be started later."""
    if where.collector_url is None:
        return
    try:
        with Client.from_environment(where.collector_url, timeout_s=3.0) as client:
            healthy = client.health()
    except ClientError:
        healthy = False
    if not healthy:
        console.print(
            f"warning: no collector answers at {where.collector_url}; start one with "
            f"“draftgate serve”, then press Refresh",
            markup=False,
            soft_wrap=True,
        )
