"""HTTP connections: uvicorn's, with long bodies read once, and only when the application asks.

uvicorn reads a body as it comes, and copies it five times on its way. Here a long one is left with
the system until the application asks for it, and is then read into its place. An application that
answers without asking, as it does where there is no room, pays for the answer alone: what the
sender goes on sending is read over and over into one buffer, and the connection can be used again.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import httptools
import numpy as np
import numpy.typing as npt
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEAD_BYTES: Final = 64 * 1024
"""Read at once while a head may come; a shorter body is uvicorn's to read."""
_DISCARDED_BYTES: Final = 512 * 1024
"""Read at once of a body that nobody wants."""


def connections(*, longest_body_bytes: int) -> Callable[..., asyncio.BufferedProtocol]:
    """Return what makes the connections of one server, as uvicorn's setting `http` wants it.

    A body longer than `longest_body_bytes`, or of unknown length, is read piece by piece.
    """
    return partial(
        _Connection, bytearray(_HEAD_BYTES), bytearray(_DISCARDED_BYTES), longest_body_bytes
    )


class _Connection(asyncio.BufferedProtocol):
    """Gives the event loop a place for what it reads next.

    Both buffers are shared by all connections of the loop: what was read is taken out of them
    before anything else happens.
    """

    def __init__(
        self, head: bytearray, discarded: bytearray, longest_body_bytes: int, **options: Any
    ) -> None:
        """Any: uvicorn's options of a connection."""
        self._head = memoryview(head)
        self._discarded = memoryview(discarded)
        self._requests = _Requests(longest_body_bytes, **options)

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Return where to read to."""
        requests = self._requests
        if not requests.body_bytes_left:
            return self._head
        if requests.wants_body:
            return requests.place()
        return self._discarded[: requests.body_bytes_left]

    def buffer_updated(self, nbytes: int) -> None:
        """Take what was read."""
        if self._requests.body_bytes_left:
            self._requests.body_received(nbytes)
        else:
            self._requests.data_received(bytes(self._head[:nbytes]))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._requests.connection_made(transport)  # type: ignore[arg-type]  # of a stream

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._requests.connection_lost(exc)

    def eof_received(self) -> None:
        """Have the transport close itself."""
        self._requests.eof_received()

    def pause_writing(self) -> None:
        """Make answers wait."""
        self._requests.pause_writing()

    def resume_writing(self) -> None:
        """Let answers go on."""
        self._requests.resume_writing()


class _Requests(HttpToolsProtocol):
    """uvicorn's requests; what the parser does not see of a long body is counted here."""

    def __init__(self, longest_body_bytes: int, **options: Any) -> None:
        super().__init__(**options)
        self._longest_body_bytes = longest_body_bytes
        self._body_bytes = 0
        self._body: npt.NDArray[np.uint8] | None = None
        self._view = memoryview(b"")
        self.body_bytes_left = 0
        """How much is still to come of a long body; 0 where none is being read."""

    @property
    def wants_body(self) -> bool:
        """Whether the application may still ask for the body, or has."""
        return not self.cycle.response_complete

    def place(self) -> memoryview:
        """Return where the rest of the body belongs."""
        come = self._body_bytes - self.body_bytes_left
        if self._body is None:
            # Memory that is not touched before it is read into: many senders may be slow.
            self._body = np.empty(self._body_bytes, np.uint8)
            self._view = memoryview(self._body)  # type: ignore[arg-type]  # a buffer it is
            self._view[:come] = self.cycle.body
        return self._view[come:]

    def body_received(self, nbytes: int) -> None:
        """Count what was read of a long body."""
        self.body_bytes_left -= nbytes
        if not self.body_bytes_left:
            self._end_body()
        if not self.wants_body:
            self._wait_for_more()

    def data_received(self, data: bytes) -> None:
        """Parse what was read."""
        super().data_received(data)
        if self.body_bytes_left:
            # Until the application asks, or has answered: both resume it.
            self.flow.pause_reading()

    def on_headers_complete(self) -> None:
        """Begin a request; said by the parser."""
        super().on_headers_complete()
        length = self._announced_bytes()
        if _HEAD_BYTES < length <= self._longest_body_bytes and not self.pipeline:
            self._body_bytes = self.body_bytes_left = length

    def on_body(self, body: bytes) -> None:
        """Take what came with the head, or a short body; said by the parser."""
        if not self.body_bytes_left:
            super().on_body(body)
            return
        self.cycle.body += body
        self.body_bytes_left -= len(body)

    def _announced_bytes(self) -> int:
        """Return the length of the body; 0 where it is not known."""
        # The parser has refused what is no number, and what comes in chunks as well.
        return next((int(value) for name, value in self.headers if name == b"content-length"), 0)

    def _end_body(self) -> None:
        self.parser = httptools.HttpRequestParser(self)  # the old one waits for the body
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        body, self._body, self._view = self._body, None, memoryview(b"")
        if body is not None and self.wants_body:
            self.cycle.body = body.tobytes()  # type: ignore[assignment]  # it is only read now
            self.cycle.more_body = False
            self.cycle.message_event.set()

    def _wait_for_more(self) -> None:
        """Close the connection after uvicorn's usual time, unless something comes before."""
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )
