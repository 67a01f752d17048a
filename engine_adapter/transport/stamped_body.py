"""An answer's body whose pieces keep the time at which each reached this machine.

Nobody needs a piece before some more are there, since the kernel has stamped it: the body is looked
at every `_LOOK_S` and at its end. To wake a task for each piece would take half of what reading a
stream costs, and a client that cannot keep up gets two pieces with one stamp, where no thread reads
for it.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

import aiohttp

from engine_adapter.transport import failures
from engine_adapter.transport.deadlines import Deadlines, TimedBody
from engine_adapter.transport.exchanges import Arrived, Exchange, Takeover

_LOOK_S = 0.5


class StampedBody:
    """Reads one answer's body under its request's deadlines."""

    def __init__(
        self, response: aiohttp.ClientResponse, exchange: Exchange, deadlines: Deadlines
    ) -> None:
        content = self._content = response.content
        self._connection = response.connection
        self._exchange = exchange
        self._deadlines = deadlines
        self._loop = asyncio.get_running_loop()
        self._begun = False
        self._due_s = deadlines.first_byte_s
        self._unstamped: TimedBody | None = None
        self._takeover: Takeover | None = exchange.takeover
        if exchange.socket is None:  # a loop that reads past Python's sockets
            self._unstamped = TimedBody(content, deadlines)
        else:
            exchange.watch(content)

    async def read(self) -> Sequence[Arrived]:
        """Return the pieces that have come since the last call, once there are some.

        Empty at the end; raises `GenerationError`, after all that came before the failure.
        """
        if self._unstamped is not None:
            data = await self._unstamped.read()
            return [Arrived(data, time.perf_counter())] if data else []
        while not (pieces := self._gathered()):
            failure = self._content.exception()
            if failure is not None:
                raise failures.of_body(failure, self._deadlines.url)
            if self._content.is_eof():
                return ()
            if self._connection is None or self._connection.transport is None:
                raise failures.of_cut_body(self._deadlines.url)
            await self._wait()
        self._begun = True
        since_s = time.perf_counter() - pieces[-1].at_s
        self._due_s = self._loop.time() - since_s + self._deadlines.timeouts.idle_s
        return pieces

    def close(self) -> None:
        """Watch it no more, and forget the deadlines; safe to call twice."""
        if self._takeover is not None:
            self._takeover.hand_back()
        self._exchange.watch(None)
        if self._unstamped is not None:
            self._unstamped.close()

    def _gathered(self) -> Sequence[Arrived]:
        if self._takeover is not None:
            self._takeover.gather()
            if self._takeover.is_over:
                self._takeover = None
        return self._exchange.gathered()

    async def _wait(self) -> None:
        """Wait for the next look, or for the end if that is sooner."""
        now_s, latest_s = self._loop.time(), min(self._due_s, self._deadlines.end_s)
        if now_s >= latest_s:
            raise self._deadlines.passed(begun=self._begun)
        look_s = min(now_s + _LOOK_S, latest_s)
        if self._takeover is not None:
            await self._takeover.wait(look_s)
            return
        # What breaks the body off stands in its `exception`, behind the pieces that came before.
        with suppress(aiohttp.ClientError, OSError):  # its own timeout is an OSError
            async with asyncio.timeout_at(look_s):
                await self._content.wait_eof()
