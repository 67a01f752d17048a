"""One connection to an engine: one request at a time, its response parsed as it arrives.

Pieces of a body are handed to `receive` in the call that reads them from the socket. Waking a task
for each piece through a reader's buffer would cost more than handling the piece.
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
"""Handles a piece, as `Receiver.receive` does."""

_HELD_BYTES: Final = 1 << 17
"""Limit on buffered body bytes; beyond it, reading from the engine is paused."""
_BODYLESS_BYTES: Final = 1 << 16
"""Limit on heads, trailers and framing without any body data: the parser buffers them."""
_NO_BODY: Final = frozenset((204, 304))


class EngineConnection(asyncio.Protocol):
    """Holds the state of the response in progress; `wait` returns at each change.

    `httptools` finds its callbacks, `on_…`, by name.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.pieces: list[bytes] = []
        """Buffered pieces of the body."""
        self.on_body = self.pieces.append
        self._parser = HttpResponseParser(self)
        # As in aiohttp: some servers end lines with LF alone.
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._unsent: deque[bytes] = deque()
        """Parts of the request that wait for room in the socket's write buffer."""
        self._is_full = False
        self._reset(bodyless=False)
        self.ended = True
        self._keeps_alive = True  # no request was sent on it yet

    def _reset(self, *, bodyless: bool) -> None:
        self._bodyless = bodyless
        self._interim = False
        self._ends_by_close = False
        self._keeps_alive = False
        self._bodyless_bytes = 0
        self._head_bytes = 0
        self._held_bytes = 0
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.status: int | None = None
        """The response's status code, once its head is complete."""
        self.pieces.clear()
        self._unsent.clear()
        self.ended = False
        """Whether the response is complete."""
        self.failure: GenerationError | None = None
        """Why the response will not be completed."""
        self.paused = False
        """Whether reading is paused."""
        self.heard_s = 0.0
        """When data last arrived, by `time.perf_counter`."""
        self.has_body = False
        """Whether any body data has arrived."""
        self.receive: Receive | None = None
        """Handles pieces as they arrive, except those that arrive with the response's end."""

    def send(self, *parts: bytes, bodyless: bool) -> None:
        """Send a request; `bodyless`: its response has no body."""
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
        """Whether another request can be sent on this connection."""
        is_over = self.ended and self._keeps_alive and not self._unsent
        return is_over and not self.paused and self.is_open

    async def wait(self) -> None:
        """Wait for the head, for buffered pieces, for the end or a failure, or for a pause."""
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def take_pieces(self) -> bytes:
        """Remove and return the buffered pieces, joined; resume reading."""
        pieces = self.pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._held_bytes = 0
        self.resume()
        return data

    def pause(self) -> None:
        """Pause reading from the engine."""
        if self._transport is not None and not self._transport.is_closing():
            self.paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Resume reading."""
        if self.paused:
            self.paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    def fail(self, failure: GenerationError) -> None:
        """End the response with a failure, unless it has already ended."""
        if not self.ended and self.failure is None:
            self.failure = failure
        self._wake()

    def close(self) -> None:
        """Close the connection at once; the engine then stops working on an unfinished response."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    # asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport  # type: ignore[assignment]  # asyncio passes a `Transport`

    def connection_lost(self, exc: Exception | None) -> None:
        """End or fail a response that is still in progress."""
        self._transport = None
        if not self.ended:
            self._cut(exc)

    def pause_writing(self) -> None:
        """Stop writing the request: the socket's buffer is full."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Continue writing the request."""
        self._is_full = False
        self._send_more()

    def data_received(self, data: bytes) -> None:
        """Parse the data and hand over or buffer its body pieces."""
        if self.ended:  # no request is in progress
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
            self._bodyless_bytes += len(data)
            if self._bodyless_bytes > _BODYLESS_BYTES:
                self._unreadable(ValueError("a head without an end"))
            if self.receive is None or self.ended:
                self._wake()
            return
        self._bodyless_bytes = 0
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
        """Reject a second response: one request was sent."""
        if self.ended:
            raise ValueError("an answer that was not asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers are not passed on."""
        if self.status is None:
            self._head_bytes += len(name) + len(value) + len(b": \r\n")
            if self._head_bytes > _BODYLESS_BYTES:
                raise ValueError(f"a head of more than {_BODYLESS_BYTES} bytes")
            self.headers.add(
                name.decode("utf-8", "surrogateescape"),
                value.rstrip(b" \t").decode("utf-8", "surrogateescape"),
            )

    def on_headers_complete(self) -> None:
        """Take the head, unless it is an interim (1xx) response's."""
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
        """End the interim response or the response."""
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
        """Fail the response and close the connection: the data is not a valid response."""
        self._keeps_alive = False
        if not self.ended:
            kind, words = "not_http", "does not answer in HTTP"
            if self.status is not None:
                kind, words = "stream_truncated", "the answer broke off"
            self.fail(GenerationError(kind, f"{self._url}: {words} ({exc!r:.200})"))
        self.close()

    def _cut(self, exc: Exception | None) -> None:
        """End the response if closing the connection ends it, else fail it."""
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
