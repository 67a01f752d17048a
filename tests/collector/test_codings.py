"""Content codings: decompression, refusals, and the cost of a bomb."""

import gzip
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd
from commands import run_to_end

from collector.api.codings import inflate
from collector.errors import BodyTooLargeError, MediaTypeError, RequestError

ROOT = Path(__file__).parents[2]
MIB = 1024 * 1024
# More than one slice taken from a body, and more than one inflated piece.
TEXT = b"".join(zlib.crc32(b"%d" % n).to_bytes(4, "big") for n in range(100_000)) + bytes(3 * MIB)


def raw_deflate(body: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(body) + compressor.flush()


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    " Deflate ": raw_deflate,
    "zstd": zstd.compress,
}


@pytest.mark.parametrize("coding", COMPRESS)
@pytest.mark.parametrize("body", [b"", b"x", TEXT], ids=["empty", "one byte", "3 MiB"])
def test_a_body_comes_back_whole(coding: str, body: bytes) -> None:
    """At a limit of exactly its size, and not at one byte less."""
    assert inflate(COMPRESS[coding](body), coding, len(body)) == body
    if body:
        with pytest.raises(BodyTooLargeError, match=f"larger than {len(body) - 1} bytes"):
            inflate(COMPRESS[coding](body), coding, len(body) - 1)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_several_members_are_one_body(coding: str) -> None:
    """Members and frames follow one another; the limit holds for their sum."""
    compressed = b"".join(COMPRESS[coding](part) for part in (b"a" * 10, b"", TEXT, b"b"))
    whole = b"a" * 10 + TEXT + b"b"
    assert inflate(compressed, coding, len(whole)) == whole
    with pytest.raises(BodyTooLargeError):
        inflate(compressed, coding, len(whole) - 1)


@pytest.mark.parametrize("coding", COMPRESS)
def test_a_truncated_body_is_said_to_be(coding: str) -> None:
    """Cut anywhere, a body is refused and never taken for a shorter one."""
    compressed = COMPRESS[coding](b"some text, some more text")
    for end in range(1, len(compressed)):
        with pytest.raises(RequestError, match="body is truncated; send it again"):
            inflate(compressed[:end], coding, 1000)


@pytest.mark.parametrize(
    ("coding", "body", "words"),
    [
        ("gzip", b"garbage", "gzip body is garbled; send it again"),
        ("gzip", gzip.compress(b"a", mtime=0) + b"tail", "gzip body is garbled"),
        ("deflate", b"\xff\xff\xff", "deflate body is garbled"),
        ("deflate", zlib.compress(b"a") + b"tail", "deflate body goes on after its end"),
        ("zstd", b"garbage", "zstd body is garbled or has a window beyond 8 MiB"),
        (
            "zstd",
            zstd.compress(TEXT * 4, options={zstd.CompressionParameter.window_log: 24}),
            "zstd body is garbled or has a window beyond 8 MiB",
        ),
    ],
)
def test_what_does_not_inflate_is_named(coding: str, body: bytes, words: str) -> None:
    """The message names the coding, the error and the remedy."""
    with pytest.raises(RequestError, match=words):
        inflate(body, coding, 100 * MIB)


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "gzip,deflate", "zstd;q=1"])
def test_other_codings_are_refused(coding: str) -> None:
    """Codings in a row are too: nobody sends them but to hide a bomb."""
    with pytest.raises(MediaTypeError, match="wanted one of gzip, deflate, zstd, or identity"):
        inflate(b"", coding, 1)


BOMB = r"""
import gzip, resource, sys, zlib
from backports import zstd
from collector.api.codings import inflate
from collector.errors import BodyTooLargeError

def bomb(coding):
    zeros = bytes(1 << 24)
    if coding == "zstd":
        compressor = zstd.ZstdCompressor()
        return b"".join(compressor.compress(zeros) for _ in range(640)) + compressor.flush()
    compressor = zlib.compressobj(wbits=-15)
    # After a full flush the next 16 MiB are written just as these are.
    blocks = (compressor.compress(zeros) + compressor.flush(zlib.Z_FULL_FLUSH)) * 640
    return {"gzip": gzip.compress(b"")[:10], "deflate": b"\x78\x9c"}.get(coding, b"") + blocks

coding, limit = sys.argv[1], int(sys.argv[2])
body = bomb(coding)
inflate(zlib.compress(b"warm"), "deflate", 100)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    inflate(body, coding.split()[-1], limit)
except BodyTooLargeError:
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(len(body), (after - before) * 1024)
"""


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw deflate", "zstd"])
def test_a_bomb_holds_no_more_than_the_limit(coding: str) -> None:
    """Ten gigabytes of zeros grow the process by the limit, a piece and a window at most."""
    limit = 64 * MIB
    done = run_to_end([sys.executable, "-c", BOMB, coding, str(limit)], cwd=ROOT)
    sent, grown = map(int, done.stdout.split())
    assert sent < 11 * MIB
    assert grown < limit + 12 * MIB


SKIPPABLE = (0x184D2A53).to_bytes(4, "little") + (0).to_bytes(4, "little")


def test_frames_that_hold_nothing_are_passed_over() -> None:
    """A quarter of a million of them, before and behind the data."""
    body = SKIPPABLE * 2**17 + zstd.compress(b"spans") + SKIPPABLE * 2**17
    assert inflate(body, "zstd", 100) == b"spans"


@pytest.mark.parametrize(
    ("coding", "part"), [("zstd", zstd.compress(b"")), ("gzip", gzip.compress(b"", mtime=0))]
)
def test_a_body_of_many_empty_parts_is_refused(coding: str, part: bytes) -> None:
    """Each costs as much as thousands of bytes."""
    with pytest.raises(RequestError, match="more than 1000 parts"):
        inflate(part * (2**21 // len(part)), coding, 100)
