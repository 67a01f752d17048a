"""`draftgate serve`."""

import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from collector import logs
from collector.cli.options import Database, help_of, open_store, seconds_of, usable
from collector.logs import LogFormat, LogLevel
from collector.notify import targets
from collector.otlp import native
from collector.serving import exposure, server
from collector.settings import VARIABLES, Settings, of_options, policy_of

app = typer.Typer(no_args_is_help=True, add_completion=False)

_LOG = logging.getLogger(__name__)


_WITHOUT_OPTION = (
    "analytics_url",
    "max_body_bytes",
    "max_queue_bytes",
    "max_connections",
    "max_connections_per_address",
    "allowed_hosts",
    "key_rate_per_s",
    "busy_timeout_s",
    "redaction_key",
    "metrics_endpoint",
    "metrics_every_s",
)
"""Settings that only environment variables set."""

_VARIABLES = "\n\n".join(
    f"{VARIABLES[setting].name} (default: {VARIABLES[setting].default}): {VARIABLES[setting].help}"
    for setting in _WITHOUT_OPTION
)


@app.command(epilog=f"Environment variables without an option:\n\n{_VARIABLES}")
def serve(  # noqa: PLR0913  # one parameter per option
    database: Database = None,
    host: Annotated[str | None, typer.Option(help=help_of("host"))] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help=help_of("port"))] = None,
    grpc_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help=help_of("grpc_port"))
    ] = None,
    *,
    no_grpc: Annotated[bool, typer.Option("--no-grpc", help="Serve no gRPC.")] = False,
    require_keys: Annotated[
        bool, typer.Option("--require-keys", help=help_of("require_keys"))
    ] = False,
    no_keys: Annotated[
        bool,
        typer.Option(
            "--no-keys",
            help="Require no API key, even from other machines; a warning is logged.",
        ),
    ] = False,
    capture_content: Annotated[
        bool, typer.Option("--capture-content", help=help_of("capture_content"))
    ] = False,
    redaction: Annotated[Path | None, typer.Option(help=help_of("redaction"))] = None,
    retention_spans: Annotated[str | None, typer.Option(help=help_of("retention_spans_s"))] = None,
    retention_content: Annotated[
        str | None, typer.Option(help=help_of("retention_content_s"))
    ] = None,
    notify: Annotated[Path | None, typer.Option(help=help_of("notify"))] = None,
    silence: Annotated[str | None, typer.Option(help=help_of("silence_s"))] = None,
    tls_cert: Annotated[Path | None, typer.Option(help=help_of("tls_cert"))] = None,
    tls_key: Annotated[Path | None, typer.Option(help=help_of("tls_key"))] = None,
    log_format: Annotated[LogFormat | None, typer.Option(help=help_of("log_format"))] = None,
    log_level: Annotated[LogLevel | None, typer.Option(help=help_of("log_level"))] = None,
) -> None:
    """Receive OTLP and serve the API, until interrupted.

    OTLP comes over HTTP and gRPC. Requests already accepted are answered before it ends.

    Example: draftgate serve --database sqlite:///draftgate.db --port 4318
    """
    with usable():
        settings = of_options(
            database_url=database,
            host=host,
            port=port,
            grpc_port=grpc_port,
            require_keys=require_keys or None,
            capture_content=capture_content or None,
            redaction=redaction,
            retention_spans_s=seconds_of("--retention-spans", retention_spans),
            retention_content_s=seconds_of("--retention-content", retention_content),
            notify=notify,
            silence_s=seconds_of("--silence", silence),
            tls_cert=tls_cert,
            tls_key=tls_key,
            log_format=log_format,
            log_level=log_level,
        )
        if no_grpc:
            settings = replace(settings, grpc_port=None)
        needed = exposure.needs_keys(settings.host, require=settings.require_keys, no_keys=no_keys)
        settings = replace(settings, require_keys=needed)
        server.check_tls(settings)
        policy_of(settings)
        if settings.notify is not None:
            targets.read(settings.notify)
        listeners = server.listen_all(settings)
        # Opened once here, so that an unusable database is a one-line error, not a traceback.
        with open_store(settings) as store:
            store.check_writable()
            if settings.require_keys:
                exposure.check_keys(store, settings.host)
    logs.configure(settings.log_format, settings.log_level)
    _warn_if_exposed(settings)
    server.run(settings, listeners, lambda: _announce(listeners, settings))


def _announce(listeners: server.Listeners, settings: Settings) -> None:
    scheme = "https" if settings.tls_cert is not None else "http"
    host, port = listeners.http.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{host}:{port}"
    typer.echo(f"OTLP over HTTP at {url}/v1/traces")
    if listeners.grpc is not None:
        typer.echo(f"OTLP over gRPC at {host}:{listeners.grpc.getsockname()[1]}")
    typer.echo(f"API described at {url}/docs")
    typer.echo(f"Keys: {'required' if settings.require_keys else 'not required'}")
    content = "kept, redacted" if settings.capture_content else "dropped; only numbers are kept"
    typer.echo(f"Prompts and answers: {content}")
    if not native.is_compiled():
        typer.echo(
            "Spans: read by Python, at over three times the CPU of the compiled reader; "
            "to get that one, install a C compiler, then Draftgate again"
        )
    sys.stdout.flush()  # a parent process may wait for the address on a pipe


def _warn_if_exposed(settings: Settings) -> None:
    if exposure.is_loopback(settings.host):
        return
    if not settings.require_keys:
        _LOG.warning(
            "listening on %s, and requests carry no key: whoever can reach this port can read and "
            "write everything stored",
            settings.host,
        )
    elif settings.tls_cert is None:
        _LOG.warning(
            "listening on %s without TLS: keys and spans can be read on the way; pass --tls-cert "
            "and --tls-key, or put a TLS proxy in front",
            settings.host,
        )
