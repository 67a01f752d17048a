"""Where in a stream of HTTP requests a connection stands, and whether its heads are within bounds.

Bytes that belong to no body are counted: a head, a chunk's head, trailers.
"""

from enum import Enum, auto
from typing import Final

import httptools

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_HEADERS: Final = 100
_MOST_FED_BYTES: Final = 256 * 1024


class Phase(Enum):
    """What comes next on a connection."""

    BETWEEN = auto()
    """A request, if any."""
    HEAD = auto()
    """The rest of a head."""
    BODY = auto()
    """The rest of a body."""


class HeadTooLargeError(Exception):
    """A head, a chunk's head or a trailer is beyond its bounds."""


class RequestFraming:
    """Follows the requests of one connection; keeps nothing of them."""

    def __init__(self) -> None:
        self.phase = Phase.BETWEEN
        self.requests = 0
        """How many heads are complete."""
        self._headers = self._head_bytes = 0
        """Of the head that comes, without what stands between its parts."""
        self._outside_bytes = 0
        """Since the last byte of a body, or the end of the last request."""
        self._parser: httptools.HttpRequestParser | None = None
        """None before the first byte."""
        self._is_http = True
        self._is_first = True
        """Whether a head that begins now begins with what is fed."""

    def room(self) -> int:
        """Return how many bytes may be fed at once."""
        if self.phase is Phase.BODY and not self._outside_bytes:
            return _MOST_FED_BYTES
        return max(MAX_HEAD_BYTES - self._outside_bytes, 1)

    def feed(self, data: bytes) -> None:
        """Follow what was received; raises `HeadTooLargeError`, and leaves garbage to others."""
        if not self._is_http:
            return
        if self._parser is None:
            self._parser = httptools.HttpRequestParser(self)
            # As uvicorn's parser is set: both must find the same requests.
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
        """Follow no more; lets go of a head that is half there."""
        self._is_http = False
        self._parser = None  # which holds this object: a circle that is seldom collected

    def on_message_begin(self) -> None:
        """Begin a head; said by the parser."""
        self.phase = Phase.HEAD
        self._headers = self._head_bytes = 0
        if not self._is_first:  # what was fed with it belongs to others before it
            self._outside_bytes = 0
        self._is_first = False

    def on_url(self, part: bytes) -> None:
        """Count a part of a target; said by the parser."""
        self._head_bytes += len(part)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a trailer; said by the parser."""
        self._headers += 1
        self._head_bytes += len(name) + len(value)
        if self._is_beyond():
            raise HeadTooLargeError  # which ends the parser

    def on_headers_complete(self) -> None:
        """Go on to the body; said by the parser."""
        self.phase = Phase.BODY
        self.requests += 1

    def on_body(self, _body: bytes) -> None:
        """Note progress; said by the parser."""
        self._outside_bytes = 0

    def on_message_complete(self) -> None:
        """End a request; said by the parser."""
        self.phase = Phase.BETWEEN
        self._outside_bytes = 0

    def _is_beyond(self) -> bool:
        return self._headers > MAX_HEADERS or self._head_bytes > MAX_HEAD_BYTES
