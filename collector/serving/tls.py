"""TLS handshakes, with the same connection limits as without TLS.

asyncio's TLS servers do not report connections before the handshake is complete. So the server
listens without TLS, and each connection starts the handshake after it is registered.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from collector.serving.connections import Connections, TrackedConnection, peer_of

_HANDSHAKE_WITHIN_S: Final = 10.0
_CLOSED_WITHIN_S: Final = 2.0


def accepting(
    connections: Connections,
    context: ssl.SSLContext | None,
    plain: Callable[..., asyncio.BaseProtocol],
) -> Callable[..., asyncio.BaseProtocol]:
    """Return the factory of a port's connections; `plain` makes them, after TLS if there is any."""
    return plain if context is None else partial(_Handshake, connections, context, plain)


class _Handshake(TrackedConnection, asyncio.Protocol):
    """A connection during its TLS handshake."""

    def __init__(
        self,
        connections: Connections,
        context: ssl.SSLContext,
        then: Callable[..., asyncio.BaseProtocol],
        **options: Any,
    ) -> None:
        """Any: the options of a connection, such as uvicorn's."""
        super().__init__()
        self._connections = connections
        self._context = context
        self._then = partial(then, **options)
        self._socket: socket.socket
        self._task: asyncio.Task[None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Continue on a copy of the socket: this transport would read the handshake's bytes."""
        self.peer = peer_of(transport)
        self._socket = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        self._socket.settimeout(0)
        transport.abort()  # type: ignore[attr-defined]  # of a stream
        self._task = asyncio.get_running_loop().create_task(self._shake_hands())
        self._connections.add(self)

    def abort(self) -> None:
        """As in `TrackedConnection`."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    async def _shake_hands(self) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._then,
                self._socket,
                ssl=self._context,
                ssl_handshake_timeout=_HANDSHAKE_WITHIN_S,
                ssl_shutdown_timeout=_CLOSED_WITHIN_S,
            )
        except (OSError, ssl.SSLError):
            self._socket.close()  # the peer cannot be sent an error
        finally:
            self._connections.drop(self)
