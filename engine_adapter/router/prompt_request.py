"""Requests to engines that leave in the round of the event loop in which they are made.

aiohttp writes a request's body in a task. From Python 3.12 on that task begins at once; before, it
waits for its turn behind other streams' chunks, and the user waits with it.
"""

import sys
from collections.abc import Coroutine, Generator
from typing import Any

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.connector import Connection


class PromptRequest(aiohttp.ClientRequest):
    """Begins to write its body before that is awaited."""

    def write_bytes(
        self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
    ) -> Coroutine[Any, Any, None]:  # Any: as of every coroutine
        """Return what writes the rest, which is nothing where the socket took all of it."""
        writing = super().write_bytes(writer, conn, content_length)
        return writing if sys.version_info >= (3, 12) else _rest_of(writing)


def _rest_of(begun: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
    try:
        waits_for = begun.send(None)
    except StopIteration:
        return _nothing()
    return _awaited(_Rest(begun, waits_for))


async def _nothing() -> None:
    """Do nothing."""


async def _awaited(rest: "_Rest") -> None:
    await rest


class _Rest:
    """A coroutine that was begun outside the task that awaits it."""

    def __init__(self, begun: Coroutine[Any, Any, None], waits_for: Any) -> None:  # Any: a future
        self._begun = begun
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, None, None]:
        waits_for = self._waits_for
        while True:
            try:
                try:
                    yield waits_for
                except BaseException as exc:  # handed on: a cancellation, say
                    waits_for = self._begun.throw(exc)
                else:
                    waits_for = self._begun.send(None)
            except StopIteration:
                return
