"""An answer's body whose pieces keep the time at which each reached this machine.

As the kernel stamps the pieces, they need not be processed at once: the body is polled every
`_POLL_S` and at its end. Waking a task for each piece would be half of the cost of reading a
stream. Without the reader thread, a client that cannot keep up gets several pieces with one stamp.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

import aiohttp

from engine_adapter.transport import failures
from engine_adapter.transport.deadlines import Deadlines, TimedBody
from engine_adapter.transport.exchanges import Arrived, Exchange, Takeover

_POLL_S = 0.5


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
        if exchange.socket is None:  # an event loop that bypasses Python's sockets
            self._unstamped = TimedBody(content, deadlines)
        else:
            exchange.watch(content)

    async def read(self) -> Sequence[Arrived]:
        """Wait for pieces and return those received since the last call; empty at the end.

        Raises `GenerationError` after returning all pieces that arrived before the failure.
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
        """Stop stamping the body and cancel its timer; safe to call twice."""
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
        """Wait for the next poll, or for the body's end if that is sooner."""
        now_s, latest_s = self._loop.time(), min(self._due_s, self._deadlines.end_s)
        if now_s >= latest_s:
            raise self._deadlines.passed(begun=self._begun)
        poll_s = min(now_s + _POLL_S, latest_s)
        if self._takeover is not None:
            await self._takeover.wait(poll_s)
            return
        # `read` raises the body's `exception` after the pieces that arrived before it.
        with suppress(aiohttp.ClientError, OSError):  # its own timeout is an OSError
            async with asyncio.timeout_at(poll_s):
                await self._content.wait_eof()
