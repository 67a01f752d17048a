"""The collector as a process: its socket, its signals, its end."""

import signal
import socket
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


def run(settings: Settings, listener: socket.socket, announce: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, then answer what was sent, store it, and return.

    `announce` is called once requests are answered.
    """
    config = uvicorn.Config(
        create_app(settings),
        log_level="warning",
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
