"""Attacks that a client without an API key can make on a collector over HTTP and HTTPS."""

import threading
from http.client import HTTPConnection
from itertools import cycle

from backports import zstd

from benchmarks.attacks.attacked_collector import MEMORY_WITHIN_MIB, Attack, Listener, hold, until
from benchmarks.attacks.protobuf_bytes import field

TLS_MEMORY_WITHIN_MIB = 100.0
"""The TLS library holds some tens of kilobytes per connection besides the bytes it reads."""
BODY_MEMORY_WITHIN_MIB = 300.0
_MIB = 2**20


def long_heads(listener: Listener, seconds: float) -> None:
    """Send 150 MB of headers on a connection, repeatedly."""
    line = b"X-Long: " + b"x" * 8000 + b"\r\n"
    for _ in until(seconds):
        with listener.connected() as bare:
            bare.sendall(b"GET /healthz HTTP/1.1\r\n")
            for _ in range(150 * _MIB // len(line)):
                bare.sendall(line)


def growing_header(listener: Listener, seconds: float) -> None:
    """Send one endless header."""
    for _ in until(seconds):
        with listener.connected() as bare:
            bare.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: ")
            for _ in range(20_000):
                bare.sendall(b"x" * 4096)


def silent(listener: Listener, seconds: float) -> None:
    """Open 1,400 connections and send nothing."""
    hold(listener, [b""] * 1400, seconds)


def half_heads(listener: Listener, seconds: float) -> None:
    """Open 1,400 connections and send half a head on each."""
    hold(listener, [b"GET /healthz HTTP/1.1\r\nHost: x\r\n"] * 1400, seconds)


def half_bodies(listener: Listener, seconds: float) -> None:
    """Open 1,400 connections and send half of a 200 KB body on each."""
    head = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n"
    head += b"Content-Type: application/x-protobuf\r\n\r\n"
    hold(listener, [head + bytes(100_000)] * 1400, seconds)


def many_idle(listener: Listener, seconds: float) -> None:
    """Open 10,000 connections."""
    hold(listener, [b""] * 10_000, seconds)


def behind_one_another(listener: Listener, seconds: float) -> None:
    """Pipeline requests without end, and read no response."""
    for _ in until(seconds):
        with listener.connected() as bare:
            for _ in range(2000):
                bare.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)


def impatient(listener: Listener, seconds: float) -> None:
    """Send from 250 connections, and retry a refused request at once despite `Retry-After`."""
    body = bytes(400_000)
    head = f"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    request = f"{head}Content-Type: application/x-protobuf\r\n\r\n".encode() + body

    def work() -> None:
        for _ in until(seconds):
            with listener.connected() as bare:
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


def empty_spans(listener: Listener, seconds: float) -> None:
    """Post a kilobyte of zstd that decompresses to 10 million empty spans."""
    _post_zstd(listener, field(1, field(2, b"\x12\x00" * (10 * _MIB))), seconds)


def skippable_frames(listener: Listener, seconds: float) -> None:
    """Post 2 MB of empty zstd frames."""
    _post(listener, b"\x53\x2a\x4d\x18\0\0\0\0" * (2 * _MIB // 8), seconds)


def large_json(listener: Listener, seconds: float) -> None:
    """Post a span, a log record or a metric with half a million values, in JSON of any form."""
    attributes = '"attributes":[' + '{"key":"k","value":{"stringValue":"v"}},' * 499_999 + "{}]"
    points = '"gauge":{"dataPoints":[' + '{"timeUnixNano":"1","asDouble":1},' * 499_999 + "{}]}"
    bodies = [
        ("traces", _json("Spans", "spans", attributes)),
        ("traces", '{"resourceSpans":[],' + _json("Spans", "spans", attributes)[1:]),
        ("traces", _json("Spans", "spans", attributes).replace("eS", "e_s")),
        ("traces", _json("Spans", "spans", '"attributes":[' + "[]," * 999_999 + "[]]")),
        ("logs", _json("Logs", "logRecords", attributes)),
        ("metrics", _json("Metrics", "metrics", points)),
    ]
    for _, (path, body) in zip(until(seconds), cycle(bodies), strict=False):
        _post_once(listener, f"/v1/{path}", body.encode(), {"Content-Type": "application/json"})


def _json(signal: str, items: str, member: str) -> str:
    return f'{{"resource{signal}":[{{"scope{signal}":[{{"{items}":[{{{member}}}]}}]}}]}}'


def half_handshakes(listener: Listener, seconds: float) -> None:
    """Open 1,400 connections, and begin a TLS handshake on half of them."""
    begun = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100)
    hold(listener, [b"", begun] * 700, seconds, shakes_hands=False)


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
"""Attacks, with the memory in MiB that each may take."""
ATTACKS_ON_EXPORTS: dict[Attack, float] = {large_json: BODY_MEMORY_WITHIN_MIB}
"""The same, while another client exports over gRPC."""
TLS_ATTACKS: dict[Attack, float] = {
    half_handshakes: TLS_MEMORY_WITHIN_MIB,
    long_heads: TLS_MEMORY_WITHIN_MIB,
    growing_header: TLS_MEMORY_WITHIN_MIB,
    silent: TLS_MEMORY_WITHIN_MIB,
    half_heads: TLS_MEMORY_WITHIN_MIB,
    half_bodies: BODY_MEMORY_WITHIN_MIB,
    behind_one_another: TLS_MEMORY_WITHIN_MIB,
}
"""The same for a collector with TLS."""


def _post_zstd(listener: Listener, body: bytes, seconds: float) -> None:
    _post(listener, zstd.compress(body), seconds)


def _post(listener: Listener, body: bytes, seconds: float) -> None:
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "zstd"}
    for _ in until(seconds):
        _post_once(listener, "/v1/traces", body, headers)


def _post_once(listener: Listener, path: str, body: bytes, headers: dict[str, str]) -> None:
    connection = HTTPConnection(*listener.address, timeout=60)
    connection.request("POST", path, body, headers)
    connection.getresponse().read()
    connection.close()
