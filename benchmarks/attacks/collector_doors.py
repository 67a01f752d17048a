"""What somebody without a key can do to a collector over HTTP, with TLS or without."""

import threading
from http.client import HTTPConnection

from backports import zstd

from benchmarks.attacks.doors import MEMORY_WITHIN_MIB, Attack, Door, hold, until

TLS_MEMORY_WITHIN_MIB = 100.0
"""The library takes some tens of kilobytes for each connection, beside what it reads."""
BODY_MEMORY_WITHIN_MIB = 300.0
_MIB = 2**20


def long_heads(door: Door, seconds: float) -> None:
    """Send 150 MB of headers on one connection, again and again."""
    line = b"X-Long: " + b"x" * 8000 + b"\r\n"
    for _ in until(seconds):
        with door.connected() as bare:
            bare.sendall(b"GET /healthz HTTP/1.1\r\n")
            for _ in range(150 * _MIB // len(line)):
                bare.sendall(line)


def growing_header(door: Door, seconds: float) -> None:
    """Send one header that does not end."""
    for _ in until(seconds):
        with door.connected() as bare:
            bare.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: ")
            for _ in range(20_000):
                bare.sendall(b"x" * 4096)


def silent(door: Door, seconds: float) -> None:
    """Open 1,400 connections and say nothing."""
    hold(door, [b""] * 1400, seconds)


def half_heads(door: Door, seconds: float) -> None:
    """Open 1,400 connections and send half a head on each."""
    hold(door, [b"GET /healthz HTTP/1.1\r\nHost: x\r\n"] * 1400, seconds)


def half_bodies(door: Door, seconds: float) -> None:
    """Open 1,400 connections and send the half of a body of 200 KB on each."""
    head = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n"
    head += b"Content-Type: application/x-protobuf\r\n\r\n"
    hold(door, [head + bytes(100_000)] * 1400, seconds)


def many_idle(door: Door, seconds: float) -> None:
    """Open 10,000 connections."""
    hold(door, [b""] * 10_000, seconds)


def behind_one_another(door: Door, seconds: float) -> None:
    """Send requests without end, and read no answer."""
    for _ in until(seconds):
        with door.connected() as bare:
            for _ in range(2000):
                bare.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)


def impatient(door: Door, seconds: float) -> None:
    """Have 250 senders send what is refused again at once, whatever Retry-After says."""
    body = bytes(400_000)
    head = f"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    request = f"{head}Content-Type: application/x-protobuf\r\n\r\n".encode() + body

    def work() -> None:
        for _ in until(seconds):
            with door.connected() as bare:
                bare.settimeout(30)
                for _ in until(seconds):
                    bare.sendall(request)
                    if not bare.recv(4096):
                        break

    threads = [threading.Thread(target=work) for _ in range(250)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def empty_spans(door: Door, seconds: float) -> None:
    """Post a kilobyte of zstd that stands for 10 million empty spans."""
    _post_zstd(door, _field(1, _field(2, b"\x12\x00" * (10 * _MIB))), seconds)


def skippable_frames(door: Door, seconds: float) -> None:
    """Post 2 MB of frames that hold nothing."""
    _post(door, b"\x53\x2a\x4d\x18\0\0\0\0" * (2 * _MIB // 8), seconds)


def half_handshakes(door: Door, seconds: float) -> None:
    """Open 1,400 connections, half of which begin a TLS handshake, and say nothing more."""
    begun = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100)
    hold(door, [b"", begun] * 700, seconds, shakes_hands=False)


ATTACKS: dict[Attack, float] = {
    long_heads: MEMORY_WITHIN_MIB,
    growing_header: MEMORY_WITHIN_MIB,
    silent: MEMORY_WITHIN_MIB,
    half_heads: MEMORY_WITHIN_MIB,
    half_bodies: MEMORY_WITHIN_MIB,
    many_idle: MEMORY_WITHIN_MIB,
    behind_one_another: MEMORY_WITHIN_MIB,
    impatient: BODY_MEMORY_WITHIN_MIB,
    empty_spans: BODY_MEMORY_WITHIN_MIB,
    skippable_frames: BODY_MEMORY_WITHIN_MIB,
}
"""Each with the memory, in MiB, that it may take."""
TLS_ATTACKS: dict[Attack, float] = {
    half_handshakes: TLS_MEMORY_WITHIN_MIB,
    long_heads: TLS_MEMORY_WITHIN_MIB,
    growing_header: TLS_MEMORY_WITHIN_MIB,
    silent: TLS_MEMORY_WITHIN_MIB,
    half_heads: TLS_MEMORY_WITHIN_MIB,
    half_bodies: BODY_MEMORY_WITHIN_MIB,
    behind_one_another: TLS_MEMORY_WITHIN_MIB,
}
"""The same for those that begin with a TLS handshake."""


def _post_zstd(door: Door, body: bytes, seconds: float) -> None:
    _post(door, zstd.compress(body), seconds)


def _post(door: Door, body: bytes, seconds: float) -> None:
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "zstd"}
    for _ in until(seconds):
        connection = HTTPConnection(*door.address, timeout=60)
        connection.request("POST", "/v1/traces", body, headers)
        connection.getresponse().read()
        connection.close()


def _field(number: int, value: bytes) -> bytes:
    size, length = len(value), b""
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + value
