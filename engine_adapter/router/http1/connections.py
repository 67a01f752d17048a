"""The connection pool of one engine: open connections, reuse them, close old ones.

If several requests needed a new connection within the last 0.1 s, some are opened in advance.
"""

import asyncio
import errno
import socket
import ssl
from collections import deque
from contextlib import suppress
from typing import Final

from aiohappyeyeballs import start_connection
from yarl import URL

from engine_adapter.errors import GenerationError
from engine_adapter.router.http1.engine_connection import EngineConnection

_KEEP_S: Final = 2.0
"""Shorter than any engine's keep-alive, so that few requests hit a connection being closed."""
_NEXT_ADDRESS_S: Final = 0.25
"""How long to wait for one address before also trying the next (happy eyeballs)."""
_JUST_NOW_S: Final = 0.1
_MOST_AHEAD: Final = 8
_BEHIND_S: Final = 0.002
"""Delay before opening a connection in advance: the request that caused it is sent by then."""
_RESOLVED_S: Final = 10.0
"""How long resolved addresses are cached."""

_Address = tuple[
    int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
]


class ConnectionPool:
    """A pool of connections to one URL, used from one event loop."""

    def __init__(self, url: URL, connect_s: float) -> None:
        """Open no connection yet."""
        self._url = url
        self._connect_s = connect_s
        self._tls: ssl.SSLContext | None = None
        self._idle: list[tuple[EngineConnection, float]] = []
        """Each with the time it became idle, the latest last."""
        self._ahead: list[tuple[EngineConnection, float]] = []
        """Opened in advance and never used, each with the time it was opened, the latest last."""
        self._making: set[asyncio.Task[None]] = set()
        self._needed_s: deque[float] = deque(maxlen=_MOST_AHEAD)
        """Times at which a request found no idle connection."""
        self._sweep: asyncio.TimerHandle | None = None
        self._addresses: list[_Address] = []
        self._resolved_s = 0.0

    def acquire(self) -> EngineConnection | None:
        """Return an idle connection, else one opened in advance, else `None`."""
        now_s = asyncio.get_running_loop().time()
        found = _pop_usable(self._idle, now_s)
        if found is None:
            found = _pop_usable(self._ahead, now_s)
            self._make_ahead(now_s)
        return found

    def release(self, connection: EngineConnection) -> None:
        """Keep a connection whose response was read to its end; close any other."""
        if not connection.is_reusable:
            connection.close()
            return
        self._keep(connection, self._idle)

    def close(self) -> None:
        """Close the idle connections; safe to call twice."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for task in self._making:
            task.cancel()
        for connection, _ in self._idle + self._ahead:
            connection.close()
        self._idle.clear()
        self._ahead.clear()

    def _keep(
        self, connection: EngineConnection, among: list[tuple[EngineConnection, float]]
    ) -> None:
        loop = asyncio.get_running_loop()
        among.append((connection, loop.time()))
        if self._sweep is None:
            self._sweep = loop.call_later(_KEEP_S, self._close_old)

    def _close_old(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweep = None
        oldest_s = loop.time() - _KEEP_S
        for among in (self._idle, self._ahead):
            young = [kept for kept in among if kept[1] > oldest_s and kept[0].is_reusable]
            for kept in among:
                if kept not in young:
                    kept[0].close()
            among[:] = young
        left = self._idle[:1] + self._ahead[:1]
        if left:
            self._sweep = loop.call_at(
                min(since_s for _, since_s in left) + _KEEP_S, self._close_old
            )

    def _make_ahead(self, now_s: float) -> None:
        """Open as many in advance as requests lacked within the last `_JUST_NOW_S`."""
        just_now = sum(1 for needed_s in self._needed_s if needed_s > now_s - _JUST_NOW_S)
        self._needed_s.append(now_s)
        for _ in range(just_now - len(self._ahead) - len(self._making)):
            task = asyncio.create_task(self._make_one())
            self._making.add(task)
            task.add_done_callback(self._making.discard)

    async def _make_one(self) -> None:
        await asyncio.sleep(_BEHIND_S)
        with suppress(GenerationError):  # the next request gets the error itself
            self._keep(await self.open(), self._ahead)

    async def open(self) -> EngineConnection:
        """Open a connection; raises `GenerationError` if that fails."""
        try:
            async with asyncio.timeout(self._connect_s):
                return await self._connect()
        except ssl.SSLError as exc:  # a subclass of OSError, so it stands before it
            raise self._failure("tls_failure", "TLS failed", exc) from exc
        except TimeoutError as exc:
            raise self._failure("connect_timeout", "no connection within the timeout", exc) from exc
        except OSError as exc:
            if exc.errno == errno.ECONNREFUSED:
                raise GenerationError(
                    "connection_refused",
                    f"{self._url}: connection refused; is the engine running there?",
                ) from exc
            raise self._failure("connection_failed", "no connection", exc) from exc

    async def _connect(self) -> EngineConnection:
        loop = asyncio.get_running_loop()
        connected = await start_connection(
            await self._resolved(), happy_eyeballs_delay=_NEXT_ADDRESS_S, interleave=1
        )
        is_tls = self._url.scheme == "https"
        _, connection = await loop.create_connection(
            lambda: EngineConnection(str(self._url)),
            sock=connected,
            ssl=self._context() if is_tls else None,
            server_hostname=self._url.raw_host if is_tls else None,
        )
        return connection

    async def _resolved(self) -> list[_Address]:
        loop = asyncio.get_running_loop()
        if not self._addresses or loop.time() - self._resolved_s > _RESOLVED_S:
            try:
                found = await loop.getaddrinfo(
                    self._url.raw_host, self._url.port, type=socket.SOCK_STREAM
                )
            except socket.gaierror as exc:
                raise self._failure("dns_failure", "no such host; check `url`", exc) from exc
            self._addresses, self._resolved_s = list(found), loop.time()
        return self._addresses

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    def _failure(self, error_type: str, words: str, exc: Exception) -> GenerationError:
        said = " ".join(str(exc).split()) or type(exc).__name__
        return GenerationError(error_type, f"{self._url}: {words} ({said})")


def _pop_usable(
    among: list[tuple[EngineConnection, float]], now_s: float
) -> EngineConnection | None:
    """Remove and return the latest usable connection; close the unusable ones after it."""
    while among:
        connection, since_s = among.pop()
        if connection.is_reusable and since_s > now_s - _KEEP_S:
            return connection
        connection.close()
    return None
