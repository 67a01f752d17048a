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
        self._timeouts = timeouts
        self._clock = asyncio.get_running_loop().time
        self._end_s = self._clock() + timeouts.total_s
        self._next_s = self._clock() + timeouts.first_byte_s
        self._begun = False

    def arrived(self) -> None:
        """Give the next piece its time."""
        self._begun = True
        self._next_s = self._clock() + self._timeouts.idle_s

    async def within(self, awaitable: Awaitable[_T]) -> _T:
        """Await it up to the nearest deadline, and name what went wrong with the connection."""
        try:
            async with asyncio.timeout_at(min(self._next_s, self._end_s)):
                return await awaitable
        except aiohttp.ClientError as exc:  # aiohttp's timeout for connecting is one, too
            raise failures.of_connection(exc, self.url) from exc
        except TimeoutError as exc:  # before OSError, which it is
            raise self._passed() from exc
        except OSError as exc:
            raise failures.of_connection(exc, self.url) from exc

    def _passed(self) -> GenerationError:
        limits = self._timeouts
        if self._end_s <= self._next_s:
            return GenerationError(
                "total_timeout", f"{self.url}: no end within {limits.total_s:g} s"
            )
        if self._begun:
            return GenerationError(
                "idle_timeout", f"{self.url}: nothing more came for {limits.idle_s:g} s"
            )
        return GenerationError(
            "first_byte_timeout", f"{self.url}: no answer within {limits.first_byte_s:g} s"
        )
