"""The body of an HTTP response as a file object for Arrow."""

import io
from collections.abc import Iterator
from typing import Any, Final

import httpx

_END: Final = b"\xff\xff\xff\xff\0\0\0\0"


class ArrowBody(io.RawIOBase):
    """A response body as a file that detects truncation.

    Arrow's reader accepts a body truncated between two batches as complete.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = memoryview(b"")
        self._last = b""
        self._is_exhausted = False
        self.failure: httpx.HTTPError | None = None
        """Why the body ended early; Arrow's readers raise an error of their own for it."""

    @property
    def is_truncated(self) -> bool:
        """Whether the body is exhausted without Arrow's end-of-stream marker."""
        return self._is_exhausted and self._last != _END

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:  # Any: a writable buffer
        """Fill the buffer, and return how many bytes were left for it."""
        view, filled = memoryview(buffer).cast("B"), 0
        while filled < len(view) and (self._left or self._fill()):
            part = self._left[: len(view) - filled]
            view[filled : filled + len(part)] = part
            self._left = self._left[len(part) :]
            filled += len(part)
        self._last = (self._last + bytes(view[:filled][-len(_END) :]))[-len(_END) :]
        return filled

    def _fill(self) -> bool:
        try:
            self._left = memoryview(next(self._pieces, b""))
        except httpx.HTTPError as exc:
            self.failure = exc
            raise
        self._is_exhausted = not self._left
        return not self._is_exhausted
