"""The connections of one HTTP server, and the enforcement of their deadlines."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, Final

from collector.api.langfuse_path import PREFIX
from collector.errors import RETRY_AFTER_S
from collector.serving.tracked_connection import TrackedConnection
from collector.serving.unfinished_requests import UnfinishedRequests
from listening.open_connections import OpenConnections

_EXPORTS: Final = ("/v1/", f"{PREFIX}/v1/")
_SWEEP_EVERY_S: Final = 0.5
_COLLECTED_TOGETHER: Final = 32
"""Connections that ended: with TLS, each leaves a circle that holds its buffers."""

Message = MutableMapping[str, Any]  # Any: ASGI
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class Connections:
    """All connections to one port; use only in the event loop."""

    def __init__(
        self, most: int, most_per_address: int, unfinished: UnfinishedRequests | None = None
    ) -> None:
        """`unfinished` is what connections to several ports share."""
        self._open: OpenConnections[TrackedConnection] = OpenConnections(most, most_per_address)
        self._by_peer: dict[tuple[str, int], TrackedConnection] = {}
        self.unfinished = unfinished or UnfinishedRequests()
        self._sweeping: asyncio.TimerHandle | None = None
        self._dropped = 0
        """Connections dropped since the last garbage collection of what they left."""

    @property
    def count(self) -> int:
        """The number of connections."""
        return len(self._open)

    def add(self, connection: TrackedConnection) -> None:
        """Register a new connection; if there are too many, one is closed."""
        self._by_peer[connection.peer] = connection
        self._open.add(connection)
        if self._sweeping is None:
            self._sweep()

    def restart_wait(self, connection: TrackedConnection) -> None:
        """Restart the connection's wait: its peer has made progress."""
        self._open.restart_wait(connection)

    def drop(self, connection: TrackedConnection) -> None:
        """Unregister a closed connection."""
        self.unfinished.ended(connection, asyncio.get_running_loop().time())
        self._open.discard(connection)
        self._dropped += 1
        if self._dropped >= _COLLECTED_TOGETHER:
            self._dropped = 0
            gc.collect(0)
        if self._by_peer.get(connection.peer) is connection:
            del self._by_peer[connection.peer]

    def drain(self) -> None:
        """Drain all connections; idle ones are closed."""
        for connection in list(self._open):
            connection.drain()

    def abort(self) -> None:
        """Close all connections at once."""
        for connection in list(self._open):
            connection.abort()

    def app(self, app: App) -> App:
        """Return the application wrapped to track requests by connection.

        A peer that retries before its Retry-After has passed is delayed until then, because
        refusing it again costs more.
        """

        async def counted(scope: Message, receive: Receive, send: Send) -> None:
            connection = self._by_peer.get(scope.get("client"))  # type: ignore[arg-type]
            if connection is None:
                await app(scope, receive, send)
                return
            loop, is_export = asyncio.get_running_loop(), scope["path"].startswith(_EXPORTS)

            async def noted(message: Message) -> None:
                if is_export and message.get("status") == HTTPStatus.SERVICE_UNAVAILABLE:
                    connection.resumes_s = loop.time() + RETRY_AFTER_S
                await send(message)

            try:
                if is_export and connection.resumes_s > loop.time():
                    await asyncio.sleep(connection.resumes_s - loop.time())
                await app(scope, receive, noted)
            finally:
                connection.answer_ended()
                self.restart_wait(connection)

        return counted

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        self.unfinished.end_slow(now_s)
        for connection in list(self._open):
            if connection.deadline_s <= now_s:
                connection.expire()
        self._sweeping = loop.call_later(_SWEEP_EVERY_S, self._sweep) if self._by_peer else None


def peer_of(transport: asyncio.BaseTransport) -> tuple[str, int]:
    """Return the peer's address and port."""
    host, port = (transport.get_extra_info("peername") or ("", id(transport)))[:2]
    return str(host), int(port)
