"""The body of an HTTP response as a file object for Arrow."""

import io
from collections.abc import Iterator
from typing import Final

_END: Final = b"\xff\xff\xff\xff\0\0\0\0"


class ArrowBody(io.RawIOBase):
    """A response body as a file that detects truncation.

    Arrow's reader accepts a body truncated between two batches as complete.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""
        self._last = b""
        self._is_exhausted = False

    @property
    def is_truncated(self) -> bool:
        """Whether the body is exhausted without Arrow's end-of-stream marker."""
        return self._is_exhausted and self._last != _END

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, fewer at the end; all if negative."""
        parts, wanted = [], size
        while wanted and (self._left or self._fill()):
            part = self._left if wanted < 0 else self._left[:wanted]
            self._left = self._left[len(part) :]
            parts.append(part)
            wanted -= len(part) if wanted > 0 else 0
        taken = b"".join(parts)
        self._last = (self._last + taken[-len(_END) :])[-len(_END) :]
        return taken

    def _fill(self) -> bool:
        self._left = next(self._pieces, b"")
        self._is_exhausted = not self._left
        return not self._is_exhausted
