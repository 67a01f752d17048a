"""How long each phase of a request may take, and which of them took too long."""

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
    """How long each phase of a request may take, in seconds."""

    connect_s: float = 10.0
    first_byte_s: float = 120.0
    """From the request to the first bytes of its answer's body."""
    idle_s: float = 60.0
    """Between two pieces of an answer."""
    total_s: float = 600.0


class Deadlines:
    """One request's deadlines; says in its failure which one passed."""

    def __init__(self, url: str, timeouts: Timeouts) -> None:
        self.url = url
        self.timeouts = timeouts
        now_s = asyncio.get_running_loop().time()
        self.first_byte_s = now_s + timeouts.first_byte_s
        """When the answer's body is to have begun, by the loop's clock."""
        self.end_s = now_s + timeouts.total_s
        """When it is to be whole."""

    async def within(self, awaitable: Awaitable[_T]) -> _T:
        """Await what is to come before the body has begun, or be the whole of it.

        Raises `GenerationError` when a deadline passes, and for whatever went wrong with the
        connection.
        """
        try:
            async with asyncio.timeout_at(min(self.first_byte_s, self.end_s)):
                return await awaitable
        except aiohttp.ClientError as exc:  # aiohttp's timeout for connecting is one, too
            raise failures.of_connection(exc, self.url) from exc
        except TimeoutError as exc:  # before OSError, which it is
            raise self.passed(begun=False) from exc
        except OSError as exc:
            raise failures.of_connection(exc, self.url) from exc

    def passed(self, *, begun: bool) -> GenerationError:
        """Return the failure of a request one of whose deadlines has passed."""
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
    """An answer's body, read piece by piece under its request's deadlines.

    One timer looks after all pieces but the first: it fires when the earliest of them would be
    late, and is set anew for the one that is waited for by then. A timer for each piece would be a
    sixth of what relaying a stream costs.
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
            self.close()  # the timer is for the first piece, which may be given longer than others
        return data

    def close(self) -> None:
        """Forget the deadlines; safe to call twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        self._timer = self._loop.call_at(self._latest_s(), self._look)

    def _latest_s(self) -> float:
        return min(self._due_s, self._deadlines.end_s)

    def _look(self) -> None:
        """Break off the piece that is late; where none is waited for, the next `read` looks on."""
        self._timer = None
        if not self._waiting:
            return
        if self._loop.time() < self._latest_s():
            self._set_timer()
        else:
            self._content.set_exception(self._deadlines.passed(begun=self._begun))
