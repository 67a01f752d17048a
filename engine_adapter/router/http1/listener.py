"""The listening port: open it, time out its connections, and close it after the last response."""

import asyncio
import logging
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from engine_adapter.errors import RefusedRequestError
from engine_adapter.router.deferred_work import DeferredWork
from engine_adapter.router.http1.client_connection import ClientConnection, RequestHandler
from engine_adapter.router.settings import RouterLimits
from listening.open_connections import OpenConnections

_BACKLOG: Final = 1024
_REQUEST_S: Final = 60.0
"""How long a client may take to send a request (the first one counts from the connect), or to read
the rest of the last response."""
_KEEP_S: Final = 3600.0
"""How long a connection may be idle: longer than a proxy in front keeps it."""
_SWEEP_S: Final = 1.0
_CUT_S: Final = 5.0
"""How long to wait for aborted connections to close."""


class Listener:
    """Listens while its block runs."""

    def __init__(
        self,
        handler: RequestHandler,
        host: str,
        port: int,
        *,
        limits: RouterLimits,
        logger: logging.Logger,
    ) -> None:
        self._handler = handler
        self._host, self._port = host, port
        self._limits = limits
        self._logger = logger
        self._connections: OpenConnections[ClientConnection] = OpenConnections(
            limits.connections, limits.connections_per_address, files_each=2
        )
        self._deferred = DeferredWork()
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def url(self) -> str:
        """The URL that it listens on; raises `RuntimeError` if it is not open."""
        if self._server is None:
            raise RuntimeError("the listener is not open")
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def __aenter__(self) -> Self:
        """Open the port; raises `OSError` if it is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: ClientConnection(
                self._handler,
                self._limits.body_bytes,
                self._connections,
                self._deferred,
                self._logger,
            ),
            self._host,
            self._port,
            backlog=_BACKLOG,
        )
        self._timer = loop.call_later(_SWEEP_S, self._close_overdue)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Take no more requests and wait up to `limits.finish_s` for whole ones to be answered."""
        if self._server is not None:
            self._server.close()
        if self._timer is not None:
            self._timer.cancel()
        stopping = RefusedRequestError(
            503, "router_stopping", "the router is stopping", retry_after_s=1
        )
        for connection in list(self._connections):
            connection.stop(stopping)
        await self._wait_closed(self._limits.finish_s)
        for connection in list(self._connections):
            connection.abort()
        await self._wait_closed(_CUT_S)

    async def _wait_closed(self, within_s: float) -> None:
        """Wait until all connections are closed, at most `within_s`."""
        if self._connections:
            await asyncio.wait([one.closed for one in self._connections], timeout=within_s)

    def _close_overdue(self) -> None:
        """Close idle and lingering connections; refuse requests that take too long to arrive."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_SWEEP_S, self._close_overdue)
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
