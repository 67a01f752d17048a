"""The body of an HTTP answer as a file for Arrow."""

import io
from collections.abc import Iterator
from typing import Final

_END: Final = b"\xff\xff\xff\xff\0\0\0\0"


class ArrowBody(io.RawIOBase):
    """A body as a file, which remembers whether it came to the end that Arrow gives it.

    Arrow's reader takes a body that breaks off between two batches for a whole one.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""
        self._last = b""
        self._is_exhausted = False

    @property
    def broke_off(self) -> bool:
        """Whether there is no more, and what was read last is not the end of a stream."""
        return self._is_exhausted and self._last != _END

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return as many bytes as are asked for, fewer at the end."""
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
