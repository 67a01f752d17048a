"""`draftgate serve` and `draftgate db`."""

import ipaddress
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from collector import server
from collector.errors import CollectorError, SettingsError
from collector.settings import MIB, Settings, from_environment
from collector.store import Store, sizes

app = typer.Typer(no_args_is_help=True, help="The collector: OTLP in, SQL behind.")
db = typer.Typer(no_args_is_help=True, help="Look after the database.")
app.add_typer(db, name="db")

_UNUSABLE = 2

Database = Annotated[
    str | None,
    typer.Option(
        help="Database URL (env DRAFTGATE_DATABASE_URL; default sqlite:///draftgate.db).",
        show_default=False,
    ),
]


@app.command()
def serve(
    database: Database = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on (default 127.0.0.1).")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port (default 4318); 0 takes a free one.")
    ] = None,
    grpc_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port of OTLP over gRPC (default 4317); 0 takes a free one."
        ),
    ] = None,
    *,
    no_grpc: Annotated[bool, typer.Option("--no-grpc", help="Serve no gRPC.")] = False,
) -> None:
    """Receive OTLP and serve the API, until interrupted.

    Example: draftgate serve --database sqlite:///draftgate.db --port 4318
    """
    with _one_line_errors():
        settings = _settings(database, host=host, port=port, grpc_port=grpc_port)
        if no_grpc:
            settings = replace(settings, grpc_port=None)
        listeners = server.listen_all(settings)
        # Opened once beforehand: a database that cannot be used is one line, not a traceback.
        store = Store.open(settings.database_url, busy_timeout_s=settings.busy_timeout_s)
        try:
            store.check_writable()
        finally:
            store.close()
    _warn_if_exposed(settings.host)
    server.run(settings, listeners, lambda: _announce(listeners))


@db.command()
def upgrade(database: Database = None) -> None:
    """Create the database, or bring it to the newest schema.

    Example: draftgate db upgrade --database sqlite:///draftgate.db
    """
    with _one_line_errors():
        settings = _settings(database)
        Store.open(settings.database_url, busy_timeout_s=settings.busy_timeout_s).close()
    typer.echo(f"{settings.database_url} is at the newest schema")


@db.command()
def stats(
    database: Database = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show how many rows each table holds, and the size of the file.

    Example: draftgate db stats --json
    """
    with _one_line_errors():
        settings = _settings(database)
        _require_existing(settings.database_url)
        store = Store.open(settings.database_url, busy_timeout_s=settings.busy_timeout_s)
        try:
            with store.read() as connection:
                rows = sizes.row_counts(connection)
            size_bytes = store.size_bytes()
        finally:
            store.close()
    if as_json:
        typer.echo(json.dumps({"rows": rows, "size_bytes": size_bytes}, indent=2))
    else:
        _print_stats(rows, size_bytes)


def _settings(database: str | None, **options: str | int | None) -> Settings:
    given = {"database_url": database, **options}
    chosen = {name: value for name, value in given.items() if value is not None}
    return replace(from_environment(), **chosen)  # type: ignore[arg-type]  # each has its type


def _announce(listeners: server.Listeners) -> None:
    host, port = listeners.http.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    url = f"http://{host}:{port}"
    typer.echo(f"OTLP over HTTP at {url}/v1/traces")
    if listeners.grpc is not None:
        typer.echo(f"OTLP over gRPC at {host}:{listeners.grpc.port}")
    typer.echo(f"API described at {url}/docs")
    sys.stdout.flush()  # whoever waits for the address may read from a pipe


def _warn_if_exposed(host: str) -> None:
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback:
        typer.echo(
            f"warning: listening on {host}, and requests carry no key: whoever can reach this "
            "port can read and write everything stored",
            err=True,
        )


def _require_existing(database_url: str) -> None:
    """Refuse to create a database only to count nothing in it."""
    path = database_url.removeprefix("sqlite:///")
    if path != database_url and not Path(path).exists():
        raise SettingsError(
            f"{path}: does not exist; name an existing database with --database, "
            "or create one with `draftgate db upgrade`"
        )


def _print_stats(rows: dict[str, int], size_bytes: int) -> None:
    table = Table("table", "rows", title=f"{size_bytes / MIB:,.1f} MiB")
    table.columns[1].justify = "right"
    for name, count in rows.items():
        table.add_row(name, f"{count:,}")
    Console().print(table)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except CollectorError as exc:
        _fail(str(exc))


def _fail(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(_UNUSABLE)
