"""Tracks a connection's position in its stream of HTTP requests, and limits the size of heads.

Counts the bytes outside bodies: heads, chunk headers and trailers.
"""

from enum import Enum, auto
from typing import Final

import httptools

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_HEADERS: Final = 100
_MOST_FED_BYTES: Final = 256 * 1024


class Phase(Enum):
    """The next expected input of a connection."""

    BETWEEN = auto()
    """A new request."""
    HEAD = auto()
    """The rest of a head."""
    BODY = auto()
    """The rest of a body."""


class HeadTooLargeError(Exception):
    """A head, chunk header or trailer exceeds its limits."""


class RequestFraming:
    """Tracks the requests of one connection without storing them."""

    def __init__(self) -> None:
        self.phase = Phase.BETWEEN
        self.requests = 0
        """The number of complete heads."""
        self._headers = self._head_bytes = 0
        """Headers of the current head and the bytes of its parts, without separators."""
        self._outside_bytes = 0
        """Bytes since the last byte of a body, or the end of the last request."""
        self._parser: httptools.HttpRequestParser | None = None
        """None before the first byte."""
        self._is_http = True
        self._is_first = True
        """Whether a head that begins now begins at the start of the fed data."""

    def room(self) -> int:
        """Return how many bytes may be fed at once."""
        if self.phase is Phase.BODY and not self._outside_bytes:
            return _MOST_FED_BYTES
        return max(MAX_HEAD_BYTES - self._outside_bytes, 1)

    def feed(self, data: bytes) -> None:
        """Process received bytes; raises `HeadTooLargeError`, and ignores malformed input."""
        if not self._is_http:
            return
        if self._parser is None:
            self._parser = httptools.HttpRequestParser(self)
            # The same setting as uvicorn's parser: both must find the same requests.
            self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        if self._outside_bytes >= MAX_HEAD_BYTES:
            raise HeadTooLargeError
        self._is_first = self.phase is Phase.BETWEEN
        self._outside_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.on_message_complete()
        except httptools.HttpParserError:
            self._is_http = False
        if self._is_beyond():
            raise HeadTooLargeError

    def end(self) -> None:
        """Stop tracking, and free an incomplete head."""
        self._is_http = False
        self._parser = None  # breaks a reference cycle, which would seldom be collected

    def on_message_begin(self) -> None:
        """Begin a head; called by the parser."""
        self.phase = Phase.HEAD
        self._headers = self._head_bytes = 0
        if not self._is_first:  # the fed data also contains earlier requests
            self._outside_bytes = 0
        self._is_first = False

    def on_url(self, part: bytes) -> None:
        """Count a part of the request target; called by the parser."""
        self._head_bytes += len(part)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header or trailer; called by the parser."""
        self._headers += 1
        self._head_bytes += len(name) + len(value)
        if self._is_beyond():
            raise HeadTooLargeError  # stops the parser

    def on_headers_complete(self) -> None:
        """Begin the body; called by the parser."""
        self.phase = Phase.BODY
        self.requests += 1

    def on_body(self, _body: bytes) -> None:
        """Reset the count of bytes outside bodies; called by the parser."""
        self._outside_bytes = 0

    def on_message_complete(self) -> None:
        """End a request; called by the parser."""
        self.phase = Phase.BETWEEN
        self._outside_bytes = 0

    def _is_beyond(self) -> bool:
        return self._headers > MAX_HEADERS or self._head_bytes > MAX_HEAD_BYTES
