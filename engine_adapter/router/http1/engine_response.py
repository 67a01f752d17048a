"""An engine's response under its request's deadlines: read in pieces or streamed to a receiver."""

import asyncio
import time
from typing import Final

from engine_adapter.router.http1.connections import ConnectionPool
from engine_adapter.router.http1.engine_connection import EngineConnection
from engine_adapter.router.transport import Receiver
from engine_adapter.transport import Deadlines

_SOON_S: Final = 0.001
"""Shortest timer: the event loop's clock may lag by this much."""


class EngineResponse:
    """The response to a sent request; `begin` waits for its head.

    One timer covers the head and all pieces: it fires when the earliest of them would be late and
    is then set again for the one awaited by that time.
    """

    def __init__(
        self,
        connections: ConnectionPool,
        connection: EngineConnection,
        deadlines: Deadlines,
        retries: int,
    ) -> None:
        self.retries = retries
        self._connections = connections
        self._connection: EngineConnection | None = connection
        self._deadlines = deadlines
        self._loop = asyncio.get_running_loop()
        self._waiting = False
        self._since_s = 0.0
        """When the wait for the next piece began, by `time.perf_counter`."""
        self._timer: asyncio.TimerHandle | None = None
        self._set_timer(connection)

    async def begin(self) -> None:
        """Wait for the head; raises `GenerationError`."""
        connection = self._open()
        try:
            while connection.status is None:
                await self._wait(connection)
        except BaseException:  # also on cancellation: closing makes the engine stop generating
            self.close()
            raise
        self.status = connection.status
        self.headers = connection.headers
        content_type = self.headers.get("Content-Type", "")
        self.is_stream = content_type.partition(";")[0].strip().lower() == "text/event-stream"

    async def read(self) -> bytes:
        """Return the next piece of the body, empty at the end; raises `GenerationError`."""
        connection = self._open()
        while not connection.pieces and not connection.ended:
            await self._wait(connection)
        return connection.take_pieces()

    async def stream_to(self, receiver: Receiver) -> None:
        """Hand over each piece in the call that reads it; raises `GenerationError`.

        Reading from the engine is paused while the receiver's client is behind.
        """
        connection = self._open()
        connection.receive = receiver.receive
        try:
            while not connection.ended:
                if connection.pieces and not receiver.receive(
                    connection.take_pieces(), connection.heard_s
                ):
                    connection.pause()
                if connection.paused:
                    await receiver.drained()
                    connection.resume()
                else:
                    await self._wait(connection)
        finally:
            connection.receive = None
        receiver.receive_last(connection.take_pieces())

    def close(self) -> None:
        """Release the connection; close it if the response was not read to its end."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._connection is not None:
            self._connections.release(self._connection)
            self._connection = None

    def _open(self) -> EngineConnection:
        if self._connection is None:
            raise RuntimeError("the response is closed")
        return self._connection

    async def _wait(self, connection: EngineConnection) -> None:
        """Wait for a change; raises the connection's failure, if it has one."""
        if connection.failure is not None:
            raise connection.failure
        self._since_s = time.perf_counter()
        if self._timer is None:
            self._set_timer(connection)
        self._waiting = True
        try:
            await connection.wait()
        finally:
            self._waiting = False

    def _set_timer(self, connection: EngineConnection) -> None:
        # The first piece may have longer than later ones; none is late before the idle timeout.
        left_s = min(self._left_s(connection), self._deadlines.timeouts.idle_s)
        self._timer = self._loop.call_later(max(left_s, _SOON_S), self._check_late)

    def _left_s(self, connection: EngineConnection) -> float:
        """Return the seconds left until the awaited head or piece is late."""
        deadlines, now_s = self._deadlines, self._loop.time()
        if not connection.has_body:
            return min(deadlines.first_byte_s, deadlines.end_s) - now_s
        heard_s = max(self._since_s, connection.heard_s)
        idle_s = heard_s + deadlines.timeouts.idle_s - time.perf_counter()
        return min(idle_s, deadlines.end_s - now_s)

    def _check_late(self) -> None:
        """Fail a late response; if the client is slow, the next wait sets the timer."""
        self._timer = None
        if not self._waiting:
            return
        connection = self._open()
        if self._left_s(connection) <= 0:
            connection.fail(self._deadlines.passed(begun=connection.has_body))
        else:
            self._set_timer(connection)
