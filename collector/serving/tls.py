"""TLS handshakes, bounded as what follows them: nobody needs a key to begin one.

The event loops take a server's certificate, but tell nobody of a handshake that is not done. So the
server listens without TLS, and a connection begins it once it is counted.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from collector.serving.bounded_connection import BoundedConnection
from collector.serving.connections import Connections, Held, peer_of

_HANDSHAKE_WITHIN_S: Final = 10.0
_CLOSED_WITHIN_S: Final = 2.0


def protocol(connections: Connections, context: ssl.SSLContext | None) -> Callable[..., Any]:
    """Return what makes the connections of one server, as uvicorn's setting `http` wants it."""
    plain = partial(BoundedConnection, connections)
    return plain if context is None else partial(_Handshake, connections, context, plain)


class _Handshake(Held, asyncio.Protocol):
    """A connection on which nothing is read without TLS."""

    def __init__(
        self,
        connections: Connections,
        context: ssl.SSLContext,
        then: Callable[..., BoundedConnection],
        **options: Any,
    ) -> None:
        """Any: uvicorn's options of a connection."""
        super().__init__()
        self._connections = connections
        self._context = context
        self._then = partial(then, **options)
        self._socket: socket.socket
        self._task: asyncio.Task[None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Go on with a copy of the socket: this transport would read what is the handshake's."""
        self.peer = peer_of(transport)
        self._socket = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        self._socket.settimeout(0)
        transport.abort()  # type: ignore[attr-defined]  # of a stream
        self._task = asyncio.get_running_loop().create_task(self._shake_hands())
        self._connections.add(self)

    def abort(self) -> None:
        """As in `Held`."""
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
            self._socket.close()  # there is nobody who could be told
        finally:
            self._connections.drop(self)
