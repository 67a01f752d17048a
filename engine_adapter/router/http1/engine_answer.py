"""An engine's answer, under its request's deadlines: read piece by piece, or handed on."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from engine_adapter.router.http1.connections import Connections
from engine_adapter.router.http1.engine_connection import EngineConnection, Take
from engine_adapter.transport import Deadlines

_SOON_S = 0.001
"""The least that a timer is set for: a loop's clock may lie that much behind."""


class Answer:
    """An answer that is asked for; what is said of it is there once `begin` has returned.

    One timer looks after the head and all pieces: it fires when the earliest of them would be
    late, and is set anew for the one that is waited for by then.
    """

    def __init__(self, connections: Connections, deadlines: Deadlines, *, retries: int = 0) -> None:
        self.retries = retries
        """How often the request had to be sent again."""
        self._connections = connections
        self._deadlines = deadlines
        self._loop = asyncio.get_running_loop()
        self._connection: EngineConnection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._begun = False
        self._waiting = False
        self._since_s = 0.0
        """Since when the next piece is waited for, by `time.perf_counter`."""

    def send_at_once(self, parts: Sequence[bytes], *, bodyless: bool) -> bool:
        """Send a request over a connection that is there; say whether there was one."""
        self._connection = self._connections.kept()
        if self._connection is None:
            return False
        self._connection.send(*parts, bodyless=bodyless)
        self._set_timer()
        return True

    async def send(self, parts: Sequence[bytes], *, bodyless: bool) -> None:
        """Send a request over a new connection; raises `GenerationError`."""
        self._connection = await self._deadlines.within(self._connections.made())
        self._connection.send(*parts, bodyless=bodyless)
        self._set_timer()

    async def begin(self) -> None:
        """Wait for the head of what was sent; raises `GenerationError`."""
        connection = self._open()
        try:
            while connection.status is None:
                await self._wait(connection)
        except BaseException:  # a cancellation, above all: the engine's work is to end
            self.close()
            raise
        self.status = connection.status
        self.headers = connection.headers
        content_type = self.headers.get("Content-Type", "")
        self.is_stream = content_type.partition(";")[0].strip().lower() == "text/event-stream"

    @property
    def is_read(self) -> bool:
        """Whether nothing of the body is left to be read."""
        connection = self._open()
        return connection.ended and not connection.pieces

    async def read(self) -> bytes:
        """Return the next piece, empty at the end; raises `GenerationError`."""
        connection = self._open()
        while not connection.pieces and not connection.ended:
            await self._wait(connection)
        self._has_begun()
        return connection.taken()

    async def hand_on(
        self, first: Take, take: Take, may_go_on: Callable[[], Awaitable[None]]
    ) -> bytes:
        """Hand on each piece in the call that reads it, and return what came with the end.

        The first one goes to `first`, the others go to `take`. Where these say so, the engine has
        to wait until `may_go_on` returns. Raises `GenerationError` once all that came before a
        failure was handed on.
        """
        connection = self._open()

        def begin(data: bytes, at_s: float) -> bool:
            connection.take = take
            self._has_begun()
            return first(data, at_s)

        connection.take = begin
        try:
            while not connection.ended:
                if connection.pieces and not connection.take(
                    connection.taken(), connection.heard_s
                ):
                    connection.pause()
                if connection.paused:
                    await may_go_on()
                    connection.resume()
                else:
                    await self._wait(connection)
        finally:
            connection.take = None
        return connection.taken()

    def close(self) -> None:
        """Let go of the connection; one whose answer was not read to its end is cut."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._connection is not None:
            self._connections.give_back(self._connection)
            self._connection = None

    def _open(self) -> EngineConnection:
        if self._connection is None:
            raise RuntimeError("the answer is closed")
        return self._connection

    async def _wait(self, connection: EngineConnection) -> None:
        """Wait for a change; raises the failure, where nothing more will come."""
        if connection.failure is not None:
            raise connection.failure
        self._since_s = time.perf_counter()
        if self._timer is None:
            self._set_timer()
        self._waiting = True
        try:
            await connection.wait()
        finally:
            self._waiting = False

    def _has_begun(self) -> None:
        if not self._begun:
            self._begun = True
            if self._timer is not None:  # it is for the first piece, which may be given longer
                self._timer.cancel()
                self._timer = None
                if self._waiting:
                    self._set_timer()

    def _set_timer(self) -> None:
        self._timer = self._loop.call_later(max(self._left_s(), _SOON_S), self._look)

    def _left_s(self) -> float:
        """Return how much longer may be waited for what is waited for."""
        deadlines, now_s = self._deadlines, self._loop.time()
        if not self._begun:
            return min(deadlines.first_byte_s, deadlines.end_s) - now_s
        heard_s = max(self._since_s, self._open().heard_s)
        idle_s = heard_s + deadlines.timeouts.idle_s - time.perf_counter()
        return min(idle_s, deadlines.end_s - now_s)

    def _look(self) -> None:
        """Break off the answer where it is late; where the client is, the next wait looks on."""
        self._timer = None
        if not self._waiting:
            return
        if self._left_s() <= 0:
            self._open().fail(self._deadlines.passed(begun=self._begun))
        else:
            self._set_timer()
