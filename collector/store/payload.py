"""Span payloads: attributes, events and links of a span as compressed bytes.

A payload is an OTLP `Span` message without the fields that have columns and without text. The text
is a second message, of attributes only: `store.texts`. Both contain the sender's own bytes and are
compressed with zstd. Payloads use a shared dictionary because attribute names repeat; each frame
names its dictionary, so never change a dictionary's file, only add a new one.
"""

import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from backports import zstd

from collector.protobuf.parts import SpanParts, read_parts

_DICTIONARY: Final = Path(__file__).with_name("payload-1.zstd-dictionary")
# Inputs are small: the default hash table of 128 KiB would take longer to clear, and would evict
# everything else from the processor's cache.
_OPTIONS: Final = {
    int(zstd.CompressionParameter.compression_level): 1,
    int(zstd.CompressionParameter.hash_log): 12,
}
# Texts of a few kilobytes repeat little, so most of the gain comes from Huffman coding. These
# options search only for long matches and at fewer positions; at this level zstd would then skip
# Huffman coding, so it is forced. This takes a quarter less time for 7 to 14 % more bytes (prose,
# Python).
_TEXT_OPTIONS: Final = {
    **_OPTIONS,
    int(zstd.CompressionParameter.target_length): 4,
    int(zstd.CompressionParameter.min_match): 7,
    1002: 1,  # ZSTD_c_literalCompressionMode, always; the binding has no name for it
}
_WHOLE: Final = zstd.ZstdCompressor.FLUSH_FRAME


def pack(payloads: Iterable[bytes]) -> list[bytes]:
    """Return the payload of each `Span` message."""
    return _codecs().pack_payloads(payloads)


def unpack(payload: bytes) -> SpanParts:
    """Return the attributes, events and links in a payload of `pack`."""
    return read_parts(_codecs().unpack(payload))


def compress(message: bytes) -> bytes:
    """Return a message of text, or a resource, compressed."""
    return _codecs().pack(message)


def decompress(packed: bytes) -> bytes:
    """Return a message compressed by `compress`."""
    return _codecs().unpack(packed)


class _Codecs(threading.local):
    """zstd's contexts, one set per thread because they are not thread-safe."""

    def __init__(self) -> None:
        self._dictionary = zstd.ZstdDict(_DICTIONARY.read_bytes())
        self._payload = zstd.ZstdCompressor(options=_OPTIONS, zstd_dict=self._dictionary)
        self._plain = zstd.ZstdCompressor(options=_TEXT_OPTIONS)

    def pack_payloads(self, payloads: Iterable[bytes]) -> list[bytes]:
        compress = self._payload.compress
        return [compress(data, _WHOLE) for data in payloads]

    def pack(self, data: bytes) -> bytes:
        return self._plain.compress(data, _WHOLE)

    def unpack(self, packed: bytes) -> bytes:
        return zstd.decompress(packed, self._dictionary)


@cache
def _codecs() -> _Codecs:
    return _Codecs()
