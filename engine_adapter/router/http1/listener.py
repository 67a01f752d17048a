"""The port that clients connect to: opened, looked after, and closed behind the last answer."""

import asyncio
import logging
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from engine_adapter.errors import RefusedRequestError
from engine_adapter.router.deferred_work import DeferredWork
from engine_adapter.router.http1.client_connection import ClientConnection, RequestHandler
from listening.open_connections import OpenConnections

_BACKLOG: Final = 1024
_REQUEST_S: Final = 60.0
"""How long a client may take to send a request, its first from when it connected, or to read what
is left of a last answer."""
_KEEP_S: Final = 3600.0
"""How long a connection may lie idle: longer than at a proxy that stands in front."""
_LOOK_S: Final = 1.0
_FINISH_S: Final = 30.0
"""How long streams in flight may go on once the router is told to stop."""
_CUT_S: Final = 5.0
"""How long what was cut may take to end."""


class Listener:
    """Listens while its block runs."""

    def __init__(
        self,
        handler: RequestHandler,
        host: str,
        port: int,
        *,
        body_bytes: int,
        connections: int,
        connections_per_address: int,
        logger: logging.Logger,
    ) -> None:
        self._handler = handler
        self._host, self._port = host, port
        self._body_bytes = body_bytes
        self._logger = logger
        self._connections: OpenConnections[ClientConnection] = OpenConnections(
            connections, connections_per_address, files_each=2
        )
        self._deferred = DeferredWork()
        self._server: asyncio.Server | None = None
        self._look: asyncio.TimerHandle | None = None

    @property
    def url(self) -> str:
        """The address, once it listens."""
        if self._server is None:
            raise RuntimeError("the listener is not open")
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def __aenter__(self) -> Self:
        """Open the port; raises `OSError` if it is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: ClientConnection(
                self._handler, self._body_bytes, self._connections, self._deferred, self._logger
            ),
            self._host,
            self._port,
            backlog=_BACKLOG,
        )
        self._look = loop.call_later(_LOOK_S, self._look_after)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Take no more requests, and let those that are whole be answered, for some time."""
        if self._server is not None:
            self._server.close()
        if self._look is not None:
            self._look.cancel()
        stopping = RefusedRequestError(
            503, "router_stopping", "the router is stopping", retry_after_s=1
        )
        for connection in list(self._connections):
            connection.stop(stopping)
        await self._gone(_FINISH_S)
        for connection in list(self._connections):
            connection.abort()
        await self._gone(_CUT_S)

    async def _gone(self, within_s: float) -> None:
        """Wait until all connections are closed and their answers over, or for so long."""
        if self._connections:
            await asyncio.wait([one.closed for one in self._connections], timeout=within_s)

    def _look_after(self) -> None:
        """Close what lies idle or finds no end, and refuse what does not become whole."""
        loop = asyncio.get_running_loop()
        self._look = loop.call_later(_LOOK_S, self._look_after)
        now_s = loop.time()
        for connection in _older(self._connections, now_s - _REQUEST_S):
            if connection.waits_for_request:
                connection.refuse_unfinished(
                    RefusedRequestError(
                        408, "request_timeout", f"no whole request came within {_REQUEST_S:g} s"
                    )
                )
            elif connection.is_leaving:
                connection.abort()
            elif connection.is_silent or (
                connection.is_idle and connection.since_s < now_s - _KEEP_S
            ):
                connection.cut()


def _older(connections: Iterable[ClientConnection], than_s: float) -> list[ClientConnection]:
    return [connection for connection in connections if connection.since_s < than_s]
