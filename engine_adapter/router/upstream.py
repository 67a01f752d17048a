"""One arm's engine over HTTP: requests go out as they came in, answers come back as bytes."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import aiohttp
from yarl import URL

from collector.contract import Arm
from engine_adapter.engines import reader_of
from engine_adapter.errors import GenerationError
from engine_adapter.router.breaker import CircuitBreaker
from engine_adapter.router.http1.connections import Connections
from engine_adapter.router.http1.engine_answer import Answer
from engine_adapter.router.http1.headers import Header
from engine_adapter.router.settings import Breaker, Upstream
from engine_adapter.transport import Deadlines
from engine_adapter.transport.failures import CONNECTION_RESET

_IN_ONE_WRITE_BYTES: Final = 1 << 16
_WITHOUT_BODY: Final = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One request to an engine."""

    method: str
    target: str
    """Path below the base, and query, as the client wrote them."""
    headers: Sequence[Header]
    """Those that are sent on, `Host`, `Content-Length` and the upstream's key left out."""
    body: bytes


class UpstreamClient:
    """Speaks to one engine, from one event loop."""

    def __init__(self, arm: Arm, settings: Upstream, breaker: Breaker) -> None:
        """Nothing is connected yet."""
        self.arm = arm
        self.settings = settings
        self.breaker = CircuitBreaker(breaker)
        self.reader = reader_of(settings.engine)
        """What reads an answer; loaded here, and not while the first user waits."""
        self.begun = 0
        """Requests sent, mirrored ones and second attempts included."""
        self.last_begun_unix_ns: int | None = None
        url = URL(settings.url.rstrip("/"))
        self._base_path = "" if url.raw_path == "/" else url.raw_path
        self._connections = Connections(url.with_user(None), settings.timeouts.connect_s)
        self._own_headers, self._has_key = _own_headers(url, settings.api_key)

    def begin(self, outgoing: Outgoing) -> "Sending":
        """Send a request, at once where a connection is there."""
        return Sending(self, self._connections, self._parts(outgoing), outgoing.method == "HEAD")

    async def close(self) -> None:
        """Close the connections; safe to call twice."""
        self._connections.close()
        await asyncio.sleep(0)  # the loop closes their sockets in its next round

    def note_begun(self) -> None:
        """Count a request."""
        self.begun += 1
        self.last_begun_unix_ns = time.time_ns()

    def _parts(self, outgoing: Outgoing) -> Sequence[bytes]:
        """Return the request as it stands on the wire: in one piece, unless it is large."""
        body, named = outgoing.body, outgoing.headers
        target = f"{outgoing.method} {self._base_path}{outgoing.target} HTTP/1.1\r\n"
        lines = [target.encode("utf-8", "surrogateescape"), self._own_headers]
        lines += [
            b"%b: %b\r\n" % (name, value)
            for name, value in named
            if not self._has_key or name.lower() != b"authorization"
        ]
        if body or outgoing.method not in _WITHOUT_BODY:
            lines.append(b"Content-Length: %d\r\n" % len(body))
        lines.append(b"\r\n")
        if len(body) > _IN_ONE_WRITE_BYTES:
            return (b"".join(lines), body)
        lines.append(body)
        return (b"".join(lines),)


class Sending:
    """A request on its way, or about to be; `answer` is to be awaited, whatever happens."""

    def __init__(
        self,
        upstream: UpstreamClient,
        connections: Connections,
        parts: Sequence[bytes],
        bodyless: bool,  # noqa: FBT001  # as HTTP has it
    ) -> None:
        self._upstream = upstream
        self._connections = connections
        self._parts = parts
        self._bodyless = bodyless
        settings = upstream.settings
        self._deadlines = Deadlines(settings.url, settings.timeouts)
        self._answer = Answer(connections, self._deadlines)
        upstream.note_begun()
        self._is_sent = self._answer.send_at_once(parts, bodyless=bodyless)

    async def answer(self) -> Answer:
        """Return the answer once its head is there; raises `GenerationError`.

        A request whose connection is cut before anything came back is sent once more, over a
        connection of its own: it met one that the engine was just closing, or an engine that was
        just restarted.
        """
        try:
            if not self._is_sent:
                await self._answer.send(self._parts, bodyless=self._bodyless)
            await self._answer.begin()
        except GenerationError as exc:
            if exc.error_type != CONNECTION_RESET:
                raise
            self._answer = Answer(self._connections, self._deadlines, retries=1)
            self._upstream.note_begun()
            await self._answer.send(self._parts, bodyless=self._bodyless)
            await self._answer.begin()
        return self._answer


def _own_headers(url: URL, key: str | None) -> tuple[bytes, bool]:
    """Return the lines that each request has, and whether a key is among them."""
    said = None if key is None else f"Bearer {key}"
    if said is None and url.user is not None:
        said = aiohttp.BasicAuth(url.user, url.password or "").encode()
    if said is not None and not said.isprintable():
        raise ValueError("a key of an upstream holds a line end or another control character")
    lines = f"Host: {url.host_port_subcomponent}\r\nAccept-Encoding: identity\r\n"
    if said is not None:
        lines += f"Authorization: {said}\r\n"
    return lines.encode(), said is not None
