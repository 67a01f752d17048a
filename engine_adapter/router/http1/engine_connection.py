"""One connection to an engine: a request at a time, and its answer's body as the parser finds it.

Pieces of a body go to whoever takes them in the call that reads them from the socket. A task that
is woken for each piece, and a reader's buffer between the two, would cost more than the piece.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict

from engine_adapter.errors import GenerationError
from engine_adapter.transport.failures import CONNECTION_RESET

Receive = Callable[[bytes, float], bool]
"""Takes a piece, as `Receiver.receive` does."""

_HELD_BYTES: Final = 1 << 17
"""Of a body that nobody takes yet; beyond it, the engine has to wait."""
_SILENT_BYTES: Final = 1 << 16
"""Of heads, trailers and the like, in a row: what is no body is held by the parser."""
_NO_BODY: Final = frozenset((204, 304))


class EngineConnection(asyncio.Protocol):
    """Holds the state of the answer that is on its way; `wait` tells of each change.

    `httptools` finds its callbacks, `on_…`, by their names.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.pieces: list[bytes] = []
        """Of the body, that nobody has taken."""
        self.on_body = self.pieces.append
        self._parser = HttpResponseParser(self)
        # As aiohttp's: some servers end their lines with LF alone.
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._unsent: deque[bytes] = deque()
        """Of the request, that the socket is not yet given: it takes little at once."""
        self._is_full = False
        self._reset(bodyless=False)
        self.ended = True
        self._keeps_alive = True  # nothing was asked of it yet

    def _reset(self, *, bodyless: bool) -> None:
        self._bodyless = bodyless
        self._interim = False
        self._ends_by_close = False
        self._keeps_alive = False
        self._silent_bytes = 0
        self._head_bytes = 0
        self._held_bytes = 0
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.status: int | None = None
        """Of the answer, once its head is whole."""
        self.pieces.clear()
        self._unsent.clear()
        self.ended = False
        """Whether the answer is whole."""
        self.failure: GenerationError | None = None
        """Why no more of it will come."""
        self.paused = False
        """Whether the engine has to wait."""
        self.heard_s = 0.0
        """When something last came, by `time.perf_counter`."""
        self.has_body = False
        """Whether something of the body has come."""
        self.receive: Receive | None = None
        """Takes pieces as they come, but those that come with the end."""

    def send(self, *parts: bytes, bodyless: bool) -> None:
        """Send a request, whose answer has no body where it is `bodyless`."""
        self._reset(bodyless=bodyless)
        if self._transport is None:
            self._cut(None)
            return
        self._unsent.extend(parts)
        self._send_more()

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_reusable(self) -> bool:
        """Whether another request may follow the last one's answer."""
        is_over = self.ended and self._keeps_alive and not self._unsent
        return is_over and not self.paused and self.is_open

    async def wait(self) -> None:
        """Wait for the head, for pieces that nobody takes, for the end, or to be told to pause."""
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def taken(self) -> bytes:
        """Return the pieces that are there; they are held no more."""
        pieces = self.pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._held_bytes = 0
        self.resume()
        return data

    def pause(self) -> None:
        """Read no more of the answer for now."""
        if self._transport is not None and not self._transport.is_closing():
            self.paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self.paused:
            self.paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    def fail(self, failure: GenerationError) -> None:
        """Let the answer end with a failure, unless it has ended."""
        if not self.ended and self.failure is None:
            self.failure = failure
        self._wake()

    def close(self) -> None:
        """Close the connection at once; where an answer is on its way, that ends its work."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    # asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self._transport = transport  # type: ignore[assignment]  # a stream's, as the loop makes it

    def connection_lost(self, exc: Exception | None) -> None:
        """Judge by what had come whether the answer is whole."""
        self._transport = None
        if not self.ended:
            self._cut(exc)

    def pause_writing(self) -> None:
        """Give the socket no more."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Go on with the request."""
        self._is_full = False
        self._send_more()

    def data_received(self, data: bytes) -> None:
        """Parse what came, and hand on what is of the body."""
        if self.ended:  # nobody asked for it
            self.close()
            return
        if self.failure is not None:
            return
        self.heard_s = time.perf_counter()
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as exc:
            self._unreadable(exc)
        pieces = self.pieces
        if not pieces:
            self._silent_bytes += len(data)
            if self._silent_bytes > _SILENT_BYTES:
                self._unreadable(ValueError("a head without an end"))
            if self.receive is None or self.ended:
                self._wake()
            return
        self._silent_bytes = 0
        self.has_body = True
        if self.receive is None or self.ended:
            self._hold(len(data))
            return
        piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        try:
            may_go_on = self.receive(piece, self.heard_s)
        except GenerationError as exc:
            self.fail(exc)
            may_go_on = False
        if not may_go_on:
            self.pause()
            self._wake()

    # httptools' callbacks

    def on_message_begin(self) -> None:
        """Refuse bytes behind the answer's end: they answer nothing that was asked."""
        if self.ended:
            raise ValueError("an answer that was not asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of the head; of a trailer, none is sent on."""
        if self.status is None:
            self._head_bytes += len(name) + len(value) + len(b": \r\n")
            if self._head_bytes > _SILENT_BYTES:
                raise ValueError(f"a head of more than {_SILENT_BYTES} bytes")
            self.headers.add(
                name.decode("utf-8", "surrogateescape"),
                value.rstrip(b" \t").decode("utf-8", "surrogateescape"),
            )

    def on_headers_complete(self) -> None:
        """Take the head, unless it is only an announcement of another."""
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self._interim = True
            self.headers.clear()
            return
        self.status = status
        if self._bodyless:
            self.ended = True
            return
        coding = self.headers.get("Transfer-Encoding")
        if coding is not None:
            self._ends_by_close = not coding.lower().rstrip().endswith("chunked")
        else:
            self._ends_by_close = "Content-Length" not in self.headers and status not in _NO_BODY

    def on_message_complete(self) -> None:
        """Take the end, of an announcement or of the answer."""
        if self._interim:
            self._interim = False
        elif not self.ended:
            self.ended = True
            self._keeps_alive = self._parser.should_keep_alive()

    def _send_more(self) -> None:
        while self._unsent and not self._is_full and self._transport is not None:
            self._transport.write(self._unsent.popleft())

    def _hold(self, size: int) -> None:
        self._held_bytes += size
        if self._held_bytes > _HELD_BYTES:
            self.pause()
        self._wake()

    def _unreadable(self, exc: Exception) -> None:
        """Cut a connection on which something came that is no answer."""
        self._keeps_alive = False
        if not self.ended:
            kind, words = "not_http", "does not answer in HTTP"
            if self.status is not None:
                kind, words = "stream_truncated", "the answer broke off"
            self.fail(GenerationError(kind, f"{self._url}: {words} ({exc!r:.200})"))
        self.close()

    def _cut(self, exc: Exception | None) -> None:
        """Take the connection's end for the answer's."""
        if self._ends_by_close and exc is None and self.failure is None:
            self.ended = True
            self._wake()
            return
        kind, words = CONNECTION_RESET, "the connection was cut"
        if self.status is not None:
            kind, words = "stream_truncated", "the answer broke off"
        said = f" ({exc})" if exc is not None else ""
        self.fail(GenerationError(kind, f"{self._url}: {words}{said}"))

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
