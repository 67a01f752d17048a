"""The connections of one HTTP server: how many there may be, and which one goes if there are more.

Among those that wait for their peer (silent, between requests, in half a head or half a body) the
one goes first that was silent longest, of the address that has the most.
"""

import asyncio
import ipaddress
import math
import resource
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

from collector.errors import RETRY_AFTER_S

_SWEEP_EVERY_S: Final = 0.5
_FILES_KEPT_FREE: Final = 256
"""File descriptors for gRPC, the database and the program itself."""
_MOST_BODY_BYTES: Final = 32 * 2**20
"""Of all bodies that are not complete; beyond it those go whose senders fell silent."""
_MOST_BODY_BYTES_AT_ALL: Final = 4 * _MOST_BODY_BYTES
_SILENT_S: Final = 2.0
_SUBNET_BITS: Final = 64
"""One sender has so much of IPv6 to itself."""

Message = MutableMapping[str, Any]  # Any: ASGI
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class Held:
    """A connection, as the server's others see it."""

    def __init__(self) -> None:
        self.peer: tuple[str, int] = ("", 0)
        self.body_bytes = 0
        """Held of a body that is not complete."""
        self.heard_s = 0.0
        """When the peer last sent something, by the loop's clock."""
        self.resumes_s = 0.0
        """Before this time no export is taken up, by the loop's clock."""

    @property
    def waits_for_peer(self) -> bool:
        """Whether nothing happens before the peer sends more."""
        return True

    @property
    def is_idle(self) -> bool:
        """Whether every request is answered."""
        return True

    @property
    def deadline_s(self) -> float:
        """When the peer is late, by the loop's clock."""
        return math.inf

    def answer_ended(self) -> None:
        """Note that the application is done with a request."""

    def expire(self) -> None:
        """End the connection, for the peer is late."""
        self.abort()

    def abort(self) -> None:
        """End the connection at once."""
        raise NotImplementedError


class Connections:
    """All of one server; for its event loop alone."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = min(most, max(_files_allowed() - _FILES_KEPT_FREE, _FILES_KEPT_FREE))
        self._most_per_address = most_per_address
        self._by_address: dict[str, dict[Held, None]] = {}
        """Each address's, the one that was silent longest first."""
        self._by_peer: dict[tuple[str, int], Held] = {}
        self._body_bytes = 0
        self._looks_again_s = 0.0
        self._sweeping: asyncio.TimerHandle | None = None

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._by_peer)

    def admit(self, connection: Held) -> bool:
        """Take a new connection, in place of another if need be; say whether there is room."""
        own = self._by_address.get(_address(connection), {})
        if len(own) >= self._most_per_address and not self._evict(own):
            return False
        if self.count >= self._most and not self._evict(max(self._by_address.values(), key=len)):
            return False
        self._by_address.setdefault(_address(connection), {})[connection] = None
        self._by_peer[connection.peer] = connection
        if self._sweeping is None:
            self._sweep()
        return True

    def heard(self, connection: Held) -> None:
        """Note that the peer sent something."""
        connection.heard_s = asyncio.get_running_loop().time()
        own = self._by_address.get(_address(connection), {})
        if connection in own:
            del own[connection]
            own[connection] = None

    def body_came(self, connection: Held, size_bytes: int) -> None:
        """Note a piece of a body; if all together hold too much, end some that are not complete."""
        connection.body_bytes += size_bytes
        self._body_bytes += size_bytes
        now_s = asyncio.get_running_loop().time()
        is_time = self._body_bytes > _MOST_BODY_BYTES and now_s >= self._looks_again_s
        if is_time or self._body_bytes > _MOST_BODY_BYTES_AT_ALL:
            self._looks_again_s = now_s + _SWEEP_EVERY_S
            self._end_half_bodies(now_s)

    def _end_half_bodies(self, now_s: float) -> None:
        """End those first whose senders were silent longest; those that send only in need."""
        in_need = self._body_bytes > _MOST_BODY_BYTES_AT_ALL
        halves = [one for one in self._by_peer.values() if one.body_bytes and one.waits_for_peer]
        for one in sorted(halves, key=lambda one: one.heard_s):
            is_silent = one.heard_s < now_s - _SILENT_S
            if self._body_bytes <= _MOST_BODY_BYTES or not (is_silent or in_need):
                return
            one.abort()
            self.drop(one)

    def body_ended(self, connection: Held) -> None:
        """Note that a body is complete, or of no more use."""
        self._body_bytes -= connection.body_bytes
        connection.body_bytes = 0

    def drop(self, connection: Held) -> None:
        """Forget a connection that has ended."""
        self.body_ended(connection)
        own = self._by_address.get(_address(connection), {})
        own.pop(connection, None)
        if not own:
            self._by_address.pop(_address(connection), None)
        if self._by_peer.get(connection.peer) is connection:
            del self._by_peer[connection.peer]

    def close(self) -> None:
        """End those that have sent no request."""
        for connection in list(self._by_peer.values()):
            if connection.is_idle:
                connection.abort()

    def app(self, app: App) -> App:
        """Return the application with its requests counted by connection.

        A peer that was told to come again, and does so at once, waits for that time to be over:
        refusing it costs more than letting it wait.
        """

        async def counted(scope: Message, receive: Receive, send: Send) -> None:
            connection = self._by_peer.get(scope.get("client"))  # type: ignore[arg-type]
            if connection is None:
                await app(scope, receive, send)
                return
            loop, is_export = asyncio.get_running_loop(), scope["path"].startswith("/v1/")

            async def noted(message: Message) -> None:
                if is_export and message.get("status") == HTTPStatus.SERVICE_UNAVAILABLE:
                    connection.resumes_s = loop.time() + RETRY_AFTER_S
                await send(message)

            try:
                if is_export and connection.resumes_s > loop.time():
                    await asyncio.sleep(connection.resumes_s - loop.time())
                await app(scope, receive, noted)
            finally:
                connection.answer_ended()
                self.heard(connection)

        return counted

    def _evict(self, among: dict[Held, None]) -> bool:
        """End the one that was silent longest and waits for its peer; say if there is one."""
        found = next((one for one in among if one.waits_for_peer), None)
        if found is None:
            return False
        found.abort()
        self.drop(found)
        return True

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        for connection in list(self._by_peer.values()):
            if connection.deadline_s <= now_s:
                connection.expire()
        self._sweeping = loop.call_later(_SWEEP_EVERY_S, self._sweep) if self._by_peer else None


def peer_of(transport: asyncio.BaseTransport) -> tuple[str, int]:
    """Return the address and the port of who connected."""
    host, port = (transport.get_extra_info("peername") or ("", id(transport)))[:2]
    return str(host), int(port)


def _address(connection: Held) -> str:
    host = connection.peer[0]
    if ":" not in host:
        return host
    with suppress(ValueError):
        return str(ipaddress.ip_network((host.partition("%")[0], _SUBNET_BITS), strict=False))
    return host


def _files_allowed() -> int:
    """Let this process open as many files as it may, and return how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return soft if soft != resource.RLIM_INFINITY else 2**31
