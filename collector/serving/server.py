"""The collector's server process: sockets, TLS, signals and shutdown."""

import gc
import signal
import socket
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import uvicorn
from fastapi import FastAPI

from collector.api.state import State
from collector.errors import SettingsError
from collector.serving.app import create_app
from collector.serving.bounded_connection import BoundedConnection
from collector.serving.browser_guard import BrowserGuard
from collector.serving.connections import Connections
from collector.serving.exposure import is_loopback
from collector.serving.grpc_server import GrpcServer
from collector.serving.tls import accepting
from collector.serving.unfinished_requests import UnfinishedRequests
from collector.settings import Settings

_DRAIN_S = 10
_REMEDY = "stop what runs there, or pass another --port"
_GRPC_REMEDY = "stop what runs there, pass another --grpc-port, or --no-grpc to do without gRPC"


def listen(host: str, port: int, remedy: str = _REMEDY) -> socket.socket:
    """Return a listening socket; raises `SettingsError` if that fails.

    Call it before anything is written, so that a port in use leaves no incomplete database.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as exc:
        raise SettingsError(f"--host {host}: {exc.strerror}; try 127.0.0.1") from exc
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(socket.SOMAXCONN)
    except OSError as exc:
        listener.close()
        raise SettingsError(
            f"cannot listen on {host} port {port}: {exc.strerror}; {remedy}"
        ) from exc
    return listener


class Listeners(NamedTuple):
    """A collector's listeners, bound before anything is written."""

    http: socket.socket
    grpc: socket.socket | None


def listen_all(settings: Settings) -> Listeners:
    """Return the listeners of the settings; raises `SettingsError` as `listen`."""
    http = listen(settings.host, settings.port)
    if settings.grpc_port is None:
        return Listeners(http, None)
    try:
        return Listeners(http, listen(settings.host, settings.grpc_port, _GRPC_REMEDY))
    except SettingsError:
        http.close()
        raise


def check_tls(settings: Settings) -> None:
    """Raise `SettingsError` unless certificate and key are both usable or both absent."""
    cert, key = settings.tls_cert, settings.tls_key
    if cert is None and key is None:
        return
    if cert is None or key is None:
        raise SettingsError("HTTPS needs --tls-cert and --tls-key; give both, or neither")
    for option, path in (("--tls-cert", cert), ("--tls-key", key)):
        try:
            path.read_bytes()
        except OSError as exc:
            raise SettingsError(f"{option} {path}: cannot be read: {exc.strerror}") from exc
    try:
        _context(cert, key)
    except (ssl.SSLError, ValueError) as exc:
        reason = getattr(exc, "reason", None) or exc
        raise SettingsError(
            f"--tls-cert {cert}, --tls-key {key}: cannot be used ({reason}); "
            "wanted a PEM certificate chain and its own key without a passphrase"
        ) from exc


def _hosts(settings: Settings) -> tuple[str, ...] | None:
    """Return the accepted host names; None for any, if other machines can reach the address."""
    return (settings.host, *settings.allowed_hosts) if is_loopback(settings.host) else None


def _tls(settings: Settings, *protocols: str) -> ssl.SSLContext | None:
    if settings.tls_cert is None:
        return None
    context = _context(settings.tls_cert, settings.tls_key)
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def _connections(settings: Settings, unfinished: UnfinishedRequests) -> Connections:
    return Connections(settings.max_connections, settings.max_connections_per_address, unfinished)


def _context(cert: Path, key: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # An empty password: OpenSSL would otherwise ask for a key's passphrase on the terminal.
    context.load_cert_chain(cert, key, password="")
    return context


def run(settings: Settings, listeners: Listeners, announce: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, then answer and store pending requests and return.

    `announce` is called once the server accepts requests.
    """
    app = create_app(settings)
    connections = _connections(settings, UnfinishedRequests())
    config = uvicorn.Config(
        connections.app(BrowserGuard(app, _hosts(settings))),
        http=accepting(  # type: ignore[arg-type]
            connections, _tls(settings), partial(BoundedConnection, connections)
        ),
        ws="none",
        proxy_headers=False,  # any peer could forge them
        log_config=None,  # keep the configured logging
        log_level="error",  # uvicorn warns of every peer that does not speak HTTP
        access_log=False,
        timeout_graceful_shutdown=_DRAIN_S,
    )
    server = _Server(config, app, connections, settings, listeners.grpc, announce)

    def on_signal(_signal: int, _frame: FrameType | None) -> None:
        # uvicorn handles these signals while it serves, and raises them again at the end: by then
        # everything is stored, so exit normally. Before it serves, there is nothing to store.
        if not server.started:
            raise SystemExit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    server.run(sockets=[listeners.http])


class _Server(uvicorn.Server):
    """uvicorn's server, which also starts and stops gRPC and announces the start of both."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: FastAPI,
        connections: Connections,
        settings: Settings,
        grpc_listener: socket.socket | None,
        announce: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._app = app
        self._connections = connections
        self._settings = settings
        self._grpc_listener = grpc_listener
        self._grpc: GrpcServer | None = None
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        _spare_the_garbage_collector()
        if self._grpc_listener is not None:
            self._grpc = GrpcServer(
                self._grpc_listener,
                self._app.state.collector,
                _connections(self._settings, self._connections.unfinished),
                _tls(self._settings, "h2"),
            )
            await self._grpc.start()
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Otherwise the shutdown would wait for requests that wait for a switch.
        collector: State = self._app.state.collector
        await collector.switches.end()
        # First, because the application's shutdown stops the writer, for which exports wait.
        if self._grpc is not None:
            await self._grpc.stop(_DRAIN_S)
        self._connections.drain()
        await super().shutdown(sockets)


def _spare_the_garbage_collector() -> None:
    """Exclude the loaded objects from garbage collection, and collect less often.

    A request creates tens of thousands of objects that live until it is answered. With the default
    settings the garbage collector would scan them, and all libraries, again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
