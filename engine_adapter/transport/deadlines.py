"""Timeouts of a request's phases, and the failure for the one that passed."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

import aiohttp

from engine_adapter.errors import GenerationError
from engine_adapter.transport import failures

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The longest time of each phase of a request, in seconds."""

    connect_s: float = 10.0
    first_byte_s: float = 120.0
    """From the request to the first bytes of the body."""
    idle_s: float = 60.0
    """Between two pieces of the body."""
    total_s: float = 600.0


class Deadlines:
    """One request's deadlines."""

    def __init__(self, url: str, timeouts: Timeouts) -> None:
        self.url = url
        self.timeouts = timeouts
        now_s = asyncio.get_running_loop().time()
        self.first_byte_s = now_s + timeouts.first_byte_s
        """The deadline for the first bytes of the body, by the loop's clock."""
        self.end_s = now_s + timeouts.total_s
        """The deadline for the end of the body, by the loop's clock."""

    async def within(self, awaitable: Awaitable[_T]) -> _T:
        """Await a head or a whole body, up to the earlier of the two deadlines.

        Raises `GenerationError` if a deadline passes or the connection fails.
        """
        try:
            async with asyncio.timeout_at(min(self.first_byte_s, self.end_s)):
                return await awaitable
        except aiohttp.ClientError as exc:  # includes aiohttp's connect timeout
            raise failures.of_connection(exc, self.url) from exc
        except TimeoutError as exc:  # a subclass of OSError, so it stands before it
            raise self.passed(begun=False) from exc
        except OSError as exc:
            raise failures.of_connection(exc, self.url) from exc

    def passed(self, *, begun: bool) -> GenerationError:
        """Return the failure for the deadline that has passed; `begun`: the body has begun."""
        limits = self.timeouts
        if asyncio.get_running_loop().time() >= self.end_s:
            return GenerationError(
                "total_timeout", f"{self.url}: no end within {limits.total_s:g} s"
            )
        if begun:
            return GenerationError(
                "idle_timeout", f"{self.url}: nothing more came for {limits.idle_s:g} s"
            )
        return GenerationError(
            "first_byte_timeout", f"{self.url}: no answer within {limits.first_byte_s:g} s"
        )


class TimedBody:
    """An answer's body, read in pieces under its request's deadlines.

    One timer covers all pieces but the first: it fires when the earliest of them would be late and
    is then set again for the one awaited by that time. A timer per piece would be a sixth of the
    cost of relaying a stream.
    """

    def __init__(self, content: aiohttp.StreamReader, deadlines: Deadlines) -> None:
        self._content = content
        self._deadlines = deadlines
        self._loop = asyncio.get_running_loop()
        self._idle_s = deadlines.timeouts.idle_s
        self._due_s = deadlines.first_byte_s
        self._begun = False
        self._waiting = False
        self._timer: asyncio.TimerHandle | None = None

    async def read(self) -> bytes:
        """Return the next piece, empty at the end; raises `GenerationError`."""
        if self._begun:
            self._due_s = self._loop.time() + self._idle_s
        if self._timer is None:
            self._set_timer()
        self._waiting = True
        try:
            data = await self._content.readany()
        except (aiohttp.ClientError, OSError) as exc:
            raise failures.of_connection(exc, self._deadlines.url) from exc
        finally:
            self._waiting = False
        if not self._begun:
            self._begun = True
            self.close()  # this timer was the first piece's, which may have longer than later ones
        return data

    def close(self) -> None:
        """Cancel the timer; safe to call twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        self._timer = self._loop.call_at(self._latest_s(), self._check_late)

    def _latest_s(self) -> float:
        return min(self._due_s, self._deadlines.end_s)

    def _check_late(self) -> None:
        """Fail a late piece; if none is awaited, leave the timer to the next `read`."""
        self._timer = None
        if not self._waiting:
            return
        if self._loop.time() < self._latest_s():
            self._set_timer()
        else:
            self._content.set_exception(self._deadlines.passed(begun=self._begun))
