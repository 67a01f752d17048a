"""Content codings: incremental decompression of bodies, with a size limit."""

import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from backports import zstd

from collector.errors import BodyTooLargeError, MediaTypeError, RequestError

_SLICE_BYTES = 64 * 1024  # compressed bytes processed at once
_PIECE_BYTES = 1024 * 1024  # decompressed bytes produced at once: the most beyond the limit
_GZIP_BITS = 16 + zlib.MAX_WBITS
_MOST_PARTS = 1000
"""Most members or frames of a body: each costs as much as thousands of bytes."""
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
"""Magic numbers of zstd's skippable frames (RFC 8878, 3.1.2)."""
_SKIPPABLE_HEAD = struct.Struct("<II")
_ZSTD_WINDOW_LOG = 23  # 8 MiB, the largest window of zstd over HTTP (RFC 9659)


class _Stream(Protocol):
    """A decompressor of one gzip member, zlib stream or zstd frame."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes: ...


def is_plain(coding: str) -> bool:
    """Return whether a body with this content coding is not compressed."""
    return coding.strip().lower() in ("", "identity")


def inflate(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Return the body without its content coding: gzip, deflate, zstd, identity or none.

    gzip members and zstd frames may follow one another, up to a thousand. Raises
    `BodyTooLargeError` as soon as the limit is exceeded, `RequestError` for malformed data and
    `MediaTypeError` for any other coding, including several codings.
    """
    if is_plain(coding):
        return body
    coding = coding.strip().lower()
    if coding not in _PIECES:
        raise MediaTypeError(
            f"Content-Encoding {coding[:60]!r}: wanted one of gzip, deflate, zstd, or identity"
        )
    pieces: list[bytes] = []
    left = max_bytes
    for piece in _PIECES[coding](body):
        left -= len(piece)
        if left < 0:
            raise too_large(max_bytes)
        pieces.append(piece)
    return b"".join(pieces)


def too_large(max_bytes: int) -> BodyTooLargeError:
    """Return the error for a body beyond the limit."""
    return BodyTooLargeError(
        f"the body is larger than {max_bytes} bytes; send smaller batches, "
        "or raise DRAFTGATE_MAX_BODY_BYTES"
    )


def _gzip(body: bytes) -> Iterator[bytes]:
    return _inflated(body, "gzip", lambda: _ZlibStream(_GZIP_BITS))


def _deflate(body: bytes) -> Iterator[bytes]:
    """Decompress a zlib stream, as the standard requires, or a raw one, as some senders send."""
    # A raw stream that starts like a zlib header would be a stored block with non-zero padding,
    # which no encoder writes.
    header = int.from_bytes(body[:2], "big")
    is_zlib = header >> 8 & 0x0F == zlib.DEFLATED and header % 31 == 0
    bits = zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS
    return _inflated(body, "deflate", lambda: _ZlibStream(bits), several=False)


def _zstd(body: bytes) -> Iterator[bytes]:
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
    return _inflated(body, "zstd", partial(zstd.ZstdDecompressor, options=options))


_PIECES: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
}


def _inflated(
    body: bytes, coding: str, start: Callable[[], _Stream], *, several: bool = True
) -> Iterator[bytes]:
    """Yield the decompressed body in pieces of at most `_PIECE_BYTES`."""
    view = memoryview(body)  # fed in slices: zlib copies all unconsumed input at each call
    at = _past_skippable(view, 0) if coding == "zstd" else 0
    parts = 0
    while at < len(view):
        parts += 1
        if parts > _MOST_PARTS:
            raise RequestError(f"the {coding} body has more than {_MOST_PARTS} parts; send one")
        stream = start()
        while not stream.eof:
            if stream.needs_input and at == len(view):
                raise RequestError(f"the {coding} body is truncated; send it again")
            data = view[at : at + _SLICE_BYTES] if stream.needs_input else b""
            at += len(data)
            try:
                yield stream.decompress(data, _PIECE_BYTES)
            except (zlib.error, zstd.ZstdError) as exc:
                window = " or has a window beyond 8 MiB" if coding == "zstd" else ""
                raise RequestError(f"the {coding} body is garbled{window}; send it again") from exc
        at -= len(stream.unused_data)
        if not several and at < len(view):
            raise RequestError(f"the {coding} body goes on after its end; send it again")
        if coding == "zstd":
            at = _past_skippable(view, at)


def _past_skippable(view: memoryview, at: int) -> int:
    """Return the offset of the next frame that is not skippable, or of the end."""
    while len(view) - at >= _SKIPPABLE_HEAD.size:
        magic, size = _SKIPPABLE_HEAD.unpack_from(view, at)
        if magic not in _SKIPPABLE:
            break
        at += _SKIPPABLE_HEAD.size + size
        if at > len(view):
            raise RequestError("the zstd body is truncated; send it again")
    return at


class _ZlibStream:
    """zlib's decompressor with the interface of zstd's."""

    def __init__(self, window_bits: int) -> None:
        self._stream = zlib.decompressobj(window_bits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes:
        piece = self._stream.decompress(
            data if self.needs_input else self._stream.unconsumed_tail, max_length
        )
        # zlib may have pending output even after it has consumed all input.
        self.needs_input = len(piece) < max_length
        return piece
