"""TLS handshakes, with the same connection limits as without TLS.

asyncio's TLS servers do not report connections before the handshake is complete. So the server
listens without TLS, and each connection starts the handshake after it is registered.
"""

import asyncio
import os
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from collector.serving.connections import Connections, peer_of
from collector.serving.tracked_connection import TrackedConnection

_HANDSHAKE_WITHIN_S: Final = 10.0
_CLOSED_WITHIN_S: Final = 2.0


_READ_BYTES: Final = 16 * 1024
"""Most bytes read at once, so that other connections have their turn."""
_HELD_BYTES: Final = 32 * 1024
"""Encrypted bytes from which on nothing more is read; less than all of a record could be stuck."""


class _Tls(SSLProtocol):
    """asyncio's TLS, with a smaller buffer that all connections share.

    uvloop's has a buffer of 256 KiB each, and holds as many while reading is paused: for a thousand
    connections half a gigabyte.
    """

    max_size = _READ_BYTES
    _shared = bytearray(_READ_BYTES)

    def __init__(self, context: ssl.SSLContext, then: asyncio.BaseProtocol) -> None:
        loop = asyncio.get_running_loop()
        self.is_ready: asyncio.Future[None] = loop.create_future()
        super().__init__(
            loop,
            then,
            context,
            self.is_ready,
            server_side=True,
            ssl_handshake_timeout=_HANDSHAKE_WITHIN_S,  # type: ignore[arg-type]  # seconds, as any
            ssl_shutdown_timeout=_CLOSED_WITHIN_S,
        )
        # Each read is copied from it at once.
        self._ssl_buffer, self._ssl_buffer_view = self._shared, memoryview(self._shared)
        self._set_read_buffer_limits(  # type: ignore[attr-defined]  # public on the transport alone
            _HELD_BYTES, 3 * _HELD_BYTES // 4
        )


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
        protocol = _Tls(self._context, self._then())
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, self._socket)
            await protocol.is_ready
        except (OSError, ssl.SSLError):
            self._socket.close()  # the peer cannot be sent an error
        finally:
            self._connections.drop(self)
