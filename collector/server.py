"""The collector as a process: its socket, its signals, its end."""

import signal
import socket
import ssl
from collections.abc import Callable
from types import FrameType

import uvicorn

from collector.app import create_app
from collector.errors import SettingsError
from collector.settings import Settings

_DRAIN_S = 10


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raises `SettingsError` where there can be none.

    Called before anything is written, so that a port in use leaves no half-made database.
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
            f"cannot listen on {host} port {port}: {exc.strerror}; "
            "stop what runs there, or pass another --port"
        ) from exc
    return listener


def check_tls(settings: Settings) -> None:
    """Raise `SettingsError` unless certificate and key are both usable, or neither is given."""
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
        # A key with a passphrase would otherwise be asked for on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (ssl.SSLError, ValueError) as exc:
        reason = getattr(exc, "reason", None) or exc
        raise SettingsError(
            f"--tls-cert {cert}, --tls-key {key}: cannot be used ({reason}); "
            "wanted a PEM certificate chain and its own key without a passphrase"
        ) from exc


def run(settings: Settings, listener: socket.socket, announce: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, then answer what was sent, store it, and return.

    `announce` is called once requests are answered.
    """
    config = uvicorn.Config(
        create_app(settings),
        log_config=None,  # uvicorn's lines go where all others go
        log_level="warning",
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        access_log=False,
        timeout_graceful_shutdown=_DRAIN_S,
    )
    server = _Server(config, announce)

    def on_signal(_signal: int, _frame: FrameType | None) -> None:
        # uvicorn handles these itself while it serves, and raises them again when it is done: by
        # then all is stored, and the exit status should say so. Before, there is nothing to save.
        if not server.started:
            raise SystemExit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """uvicorn's server, which tells when it has started."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._announce()
