"""One arm's engine over HTTP: requests go out as they came in, answers come back as bytes."""

import time
from dataclasses import dataclass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from collector.contract import Arm
from engine_adapter.engines import reader_of
from engine_adapter.errors import GenerationError
from engine_adapter.router.breaker import CircuitBreaker
from engine_adapter.router.prompt_request import PromptRequest
from engine_adapter.router.settings import Breaker, Upstream
from engine_adapter.transport import Deadlines, TimedBody

_KEEP_ALIVE_S = 2.0
"""Shorter than any engine's, so that few requests meet a connection that is just being closed."""
_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One request to an engine."""

    method: str
    target: str
    """Path below the base, and query, as the client wrote them."""
    headers: CIMultiDict[str]
    body: bytes


class Answer:
    """An engine's answer that has begun; its body is read piece by piece."""

    def __init__(
        self, response: aiohttp.ClientResponse, deadlines: Deadlines, *, retries: int
    ) -> None:
        self.status = response.status
        self.headers = response.headers
        self.retries = retries
        """How often the request had to be sent again."""
        self.is_stream = response.content_type == "text/event-stream"
        self._response = response
        self._body = TimedBody(response.content, deadlines)
        self.read = self._body.read
        """Returns the next piece, empty at the end; raises `GenerationError`."""

    @property
    def is_read(self) -> bool:
        """Whether nothing of the body is left to be read."""
        return self._response.content.at_eof()

    def close(self) -> None:
        """Let go of the connection; one whose answer was not read to its end is cut."""
        self._body.close()
        self._response.release()


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
        self._base = settings.url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def send(self, outgoing: Outgoing) -> Answer:
        """Return the answer once its head is there; raises `GenerationError`.

        A request whose connection is cut before anything came back is sent once more: it met a
        connection that the engine was just closing, or an engine that was just restarted.
        """
        url = self._base + outgoing.target
        deadlines = Deadlines(url, self.settings.timeouts)
        try:
            return Answer(await self._request(outgoing, url, deadlines), deadlines, retries=0)
        except GenerationError as exc:
            if exc.error_type != "connection_reset":
                raise
        return Answer(await self._request(outgoing, url, deadlines), deadlines, retries=1)

    async def close(self) -> None:
        """Close the connections; safe to call twice."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _request(
        self, outgoing: Outgoing, url: str, deadlines: Deadlines
    ) -> aiohttp.ClientResponse:
        headers = outgoing.headers
        if self.settings.api_key is not None:
            headers = headers.copy()
            headers["Authorization"] = f"Bearer {self.settings.api_key}"
        self.begun += 1
        self.last_begun_unix_ns = time.time_ns()
        return await deadlines.within(
            self._open().request(
                outgoing.method,
                URL(url, encoded=True),
                data=outgoing.body or None,
                headers=headers,
                allow_redirects=False,
            )
        )

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self.settings.timeouts.connect_s
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                request_class=PromptRequest,
                skip_auto_headers=("User-Agent", "Content-Type", "Accept"),
                auto_decompress=False,
                read_bufsize=_READ_BYTES,
            )
        return self._session
