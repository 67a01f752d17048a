"""Write one response to a client: the head is sent together with the first bytes of the body."""

import time
from collections.abc import Iterable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final, Protocol

_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
_WITHOUT_BODY: Final = frozenset((204, 304))
_LAST: Final = b"0\r\n\r\n"


class AnswerClient(Protocol):
    """The client connection that a response is written to."""

    def write(self, data: bytes) -> None:
        """Send or buffer the data; drop it if the client has disconnected."""

    def takes_more(self) -> bool:
        """Return whether the client is connected and its write buffer is not full."""

    async def drained(self) -> None:
        """Wait for room in the write buffer.

        Raises `ConnectionResetError` if the client has disconnected.
        """

    def cut(self) -> None:
        """Close the connection."""


class ClientAnswer:
    """Writes one response: `begin`, then `write`, then `end`."""

    def __init__(
        self, client: AnswerClient, *, is_http_1_1: bool, bodyless: bool, keeps_alive: bool
    ) -> None:
        """`bodyless`: the request was a HEAD, so the head is sent and the body is not."""
        self._client = client
        self._is_http_1_1 = is_http_1_1
        self._to_head = self._bodyless = bodyless
        self.keeps_alive = keeps_alive
        """Whether the connection stays open; an HTTP/1.0 client needs a Content-Length for that."""
        self.status: int | None = None
        """Set by `begin`."""
        self.is_unsent = True
        """Whether no byte of the response was written yet."""
        self.is_refusal = False
        """Whether the router refused the request instead of passing it on."""
        self.has_ended = False
        self._head = b""
        self._chunked = False
        self.takes_more = client.takes_more
        self.drained = client.drained

    def begin(
        self, status: int, headers: Iterable[tuple[str, str]], length: int | None = None
    ) -> None:
        """Set the head; `length` is the body's, if known.

        The head is sent with the first bytes of the body; until then `begin` may be called again.
        Raises `ValueError` for a header that contains a line end.
        """
        self.status = status
        self._bodyless = self._to_head or status in _WITHOUT_BODY
        self._chunked = False
        lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, '')}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if length is not None:
            lines.append(f"Content-Length: {length}")
        elif status not in _WITHOUT_BODY:
            self._chunked = self._is_http_1_1
            self.keeps_alive = self.keeps_alive and (self._chunked or self._bodyless)
            if self._chunked:
                lines.append("Transfer-Encoding: chunked")
        lines.append(f"Date: {_date()}")
        if not self.keeps_alive:
            lines.append("Connection: close")
        elif not self._is_http_1_1:
            lines.append("Connection: keep-alive")
        head = "\r\n".join(lines)
        if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
            raise ValueError("a header holds a line end")
        self._head = f"{head}\r\n\r\n".encode("utf-8", "surrogateescape")

    def write(self, data: bytes) -> None:
        """Send a piece of the body; nothing is sent for empty data."""
        if data and not self._bodyless:
            self._send(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def end(self, data: bytes = b"") -> None:
        """Send the last piece and, if chunked, the terminating chunk."""
        self.has_ended = True
        if self._bodyless:
            self._send(b"")
            return
        if self._chunked:
            data = b"%x\r\n%b\r\n%b" % (len(data), data, _LAST) if data else _LAST
        self._send(data)

    def whole(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        """Send a complete response."""
        self.begin(status, headers, len(body))
        self.end(body)

    def cut(self) -> None:
        """Close the connection before the response ends, so that the client sees it truncated."""
        self._client.cut()

    def _send(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
            self.is_unsent = False
        if data:
            self._client.write(data)


def _date() -> str:
    return _date_at(int(time.time()))


@lru_cache(maxsize=1)
def _date_at(unix_s: int) -> str:
    return formatdate(unix_s, usegmt=True)
