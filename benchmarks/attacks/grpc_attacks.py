"""Attacks that a client without an API key can make on a collector over gRPC."""

import contextlib
import threading
from collections.abc import Callable
from itertools import cycle

import grpc
from backports import zstd

from benchmarks.attacks.attacked_collector import MEMORY_WITHIN_MIB, Attack, Listener, hold, until
from benchmarks.attacks.health_watch import EXPORT
from benchmarks.attacks.http2_bytes import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PATHS,
    PING,
    PREFACE,
    RST_STREAM,
    Export,
    begin,
    frame,
    head,
    literal,
    message_head,
)
from benchmarks.attacks.http_attacks import BODY_MEMORY_WITHIN_MIB, TLS_MEMORY_WITHIN_MIB
from benchmarks.attacks.protobuf_bytes import field

MESSAGE_MEMORY_WITHIN_MIB = 150.0
"""Twice the room for incomplete messages, and twice a message."""
_MIB = 2**20


def silent(listener: Listener, seconds: float) -> None:
    """Open 3,000 connections: a third sends nothing, a third half of HTTP/2's preface."""
    hold(listener, [b"", PREFACE[:10], begin()] * 1000, seconds)


def half_heads(listener: Listener, seconds: float) -> None:
    """Open 1,400 connections, and send headers without `END_HEADERS` on each."""
    hold(listener, [begin() + frame(HEADERS, 0, 1, head())] * 1400, seconds)


def growing_heads(listener: Listener, seconds: float) -> None:
    """Send 100 MB of headers in continuation frames."""
    more = frame(CONTINUATION, 0, 1, literal(b"x-long", b"x" * 16_000))
    for _ in until(seconds):
        with listener.connected() as connection:
            connection.sendall(begin() + frame(HEADERS, 0, 1, head()))
            for _ in range(100 * _MIB // len(more)):
                connection.sendall(more)


def half_messages(listener: Listener, seconds: float) -> None:
    """Open 1,400 connections and send 16 of a message's 100 KB on each."""
    sent = begin() + frame(HEADERS, END_HEADERS, 1, head())
    sent += frame(DATA, 0, 1, message_head(100_000) + bytes(8_000))
    hold(listener, [sent + frame(DATA, 0, 1, bytes(8_000))] * 1400, seconds)


def large_half_messages(listener: Listener, seconds: float) -> None:
    """Send 29 of a message's 30 MB on each of 100 connections."""

    def work() -> None:
        for _ in until(seconds):
            with listener.connected() as connection:
                connection.settimeout(seconds)
                Export(connection, 30 * _MIB).send(29 * _MIB)
                connection.recv(65_536)

    _at_once([work] * 100)


def reset_calls(listener: Listener, seconds: float) -> None:
    """Begin calls and reset them, as fast as possible."""

    def work() -> None:
        for _ in until(seconds):
            with listener.connected() as connection:
                connection.sendall(begin())
                for first in range(1, 200_000, 200):
                    connection.sendall(
                        b"".join(
                            frame(HEADERS, END_HEADERS, stream, head())
                            + frame(RST_STREAM, 0, stream, b"\0\0\0\x08")
                            for stream in range(first, first + 200, 2)
                        )
                    )

    _at_once([work] * 4)


def pings(listener: Listener, seconds: float) -> None:
    """Send pings as fast as possible."""
    _flood(listener, frame(PING, 0, 0, bytes(8)) * 1000, seconds)


def small_pieces(listener: Listener, seconds: float) -> None:
    """Send a message byte by byte, each in a frame of its own."""
    head_bytes = frame(HEADERS, END_HEADERS, 1, head()) + frame(DATA, 0, 1, message_head(60_000))
    _flood(listener, head_bytes + frame(DATA, 0, 1, b"x") * 50_000, seconds)


def empty_messages(listener: Listener, seconds: float) -> None:
    """Send empty messages as fast as possible, and read no response."""
    sent = b"".join(
        frame(HEADERS, END_HEADERS, stream, head())
        + frame(DATA, END_STREAM, stream, message_head(0))
        for stream in range(1, 200, 2)
    )
    _flood(listener, sent, seconds)


def zstd_bombs(listener: Listener, seconds: float) -> None:
    """Send a kilobyte of zstd that stands for 10 million empty spans, for each signal."""
    bomb = zstd.compress(field(1, field(2, b"\x12\x00" * (10 * _MIB))))
    message = frame(DATA, END_STREAM, 1, b"\1" + len(bomb).to_bytes(4, "big") + bomb)
    for _, path in zip(until(seconds), cycle(PATHS), strict=False):
        compressed = head((b"grpc-encoding", b"zstd"), path=path)
        with listener.connected() as connection:
            connection.sendall(begin() + frame(HEADERS, END_HEADERS, 1, compressed) + message)
            connection.settimeout(1)
            while connection.recv(65_536):
                pass


def large_span(listener: Listener, seconds: float) -> None:
    """Send one span with a million attributes, which cannot be decoded in parts."""
    attribute = field(9, field(1, b"k") + field(2, field(1, b"v")))
    span = field(1, b"t" * 16) + field(2, b"s" * 8) + attribute * 1_000_000
    _call(listener, field(1, field(2, field(2, span))), seconds, grpc.Compression.NoCompression)


def _call(listener: Listener, message: bytes, seconds: float, coding: grpc.Compression) -> None:
    host, port = listener.address
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"{host}:{port}", options) as channel:
        export: Callable[..., bytes] = channel.unary_unary(EXPORT)
        for _ in until(seconds):
            with contextlib.suppress(grpc.RpcError):
                export(message, timeout=60, compression=coding)


def _flood(listener: Listener, sent: bytes, seconds: float) -> None:
    """Send the same on new connections, four at a time, until each is closed."""

    def work() -> None:
        for _ in until(seconds):
            with listener.connected() as connection:
                connection.sendall(begin())
                for _ in until(seconds):
                    connection.sendall(sent)

    _at_once([work] * 4)


def gzip_bombs(listener: Listener, seconds: float) -> None:
    """Send messages of 600 MB, compressed with gzip."""
    _call(listener, bytes(600 * _MIB), seconds, grpc.Compression.Gzip)


ATTACKS: dict[Attack, float] = {
    silent: MEMORY_WITHIN_MIB,
    half_heads: MEMORY_WITHIN_MIB,
    growing_heads: MEMORY_WITHIN_MIB,
    half_messages: 2 * MEMORY_WITHIN_MIB,
    large_half_messages: MESSAGE_MEMORY_WITHIN_MIB,
    reset_calls: MEMORY_WITHIN_MIB,
    gzip_bombs: BODY_MEMORY_WITHIN_MIB,
    zstd_bombs: BODY_MEMORY_WITHIN_MIB,
    large_span: BODY_MEMORY_WITHIN_MIB,
    pings: MEMORY_WITHIN_MIB,
    small_pieces: MEMORY_WITHIN_MIB,
    empty_messages: MEMORY_WITHIN_MIB,
}
"""Attacks, with the memory in MiB that each may take."""
TLS_ATTACKS: dict[Attack, float] = {
    silent: 1.5 * TLS_MEMORY_WITHIN_MIB,
    half_heads: TLS_MEMORY_WITHIN_MIB,
    growing_heads: TLS_MEMORY_WITHIN_MIB,
    half_messages: BODY_MEMORY_WITHIN_MIB,
    large_half_messages: BODY_MEMORY_WITHIN_MIB,
    reset_calls: TLS_MEMORY_WITHIN_MIB,
    zstd_bombs: BODY_MEMORY_WITHIN_MIB,
}
"""The same for a collector with TLS."""


def _at_once(works: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
