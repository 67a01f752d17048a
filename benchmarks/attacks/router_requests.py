"""Attacks on the router: large and fragmented requests, odd values, and silent connections."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import wire_engine
from wire_engine import CHUNKED, CHUNKS, LAST, sending

from benchmarks.attacks.findings import Finding
from benchmarks.routing import targets
from benchmarks.routing.targets import Running

POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
PING = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
MB = 1_000_000
_QUIET_S = 5.0


@dataclass
class _Watched:
    """A router under attack."""

    router: Running
    most_bytes: int = 0
    """Largest increase of memory since before the attack."""
    slowest_s: float = 0.0
    """The slowest response to another client's health checks."""
    quiet_slowest_s: float = 0.0
    """The same in the seconds before the attack: the machine's own delays."""

    def connected(self) -> socket.socket:
        port = urlsplit(self.router.url).port or 0
        return socket.create_connection(("127.0.0.1", port), timeout=120)

    def slowest(self, bound_s: float) -> Finding:
        """Return the finding on another client's wait; delays before the attack are allowed for."""
        name = f"slowest answer to another client (before: {self.quiet_slowest_s:.3f} s), s"
        return Finding(name, self.slowest_s, bound_s + self.quiet_slowest_s)

    def status_of(self, *sent: bytes) -> int:
        """Send bytes on a new connection; return the status of the response."""
        with self.connected() as client:
            for part in sent:
                client.sendall(part)
            return int(client.recv(65536).split()[1])


@contextmanager
def _attacked() -> Iterator[_Watched]:
    with ExitStack() as stack:
        urls = [
            stack.enter_context(wire_engine.running(sending(CHUNKED, CHUNKS + LAST))).url
            for _ in range(2)
        ]
        watched = _Watched(stack.enter_context(targets.module("router_process", *urls, "0.0")))
        over = threading.Event()
        watch = threading.Thread(target=_watch, args=(watched, over))
        watch.start()
        time.sleep(_QUIET_S)
        watched.quiet_slowest_s, watched.slowest_s = watched.slowest_s, 0.0
        try:
            yield watched
        finally:
            over.set()
            watch.join()


def _watch(watched: _Watched, over: threading.Event) -> None:
    before = watched.router.rss_bytes()
    with watched.connected() as client:
        while not over.wait(0.005):
            since_s = time.perf_counter()
            client.sendall(PING)
            client.recv(65536)
            watched.slowest_s = max(watched.slowest_s, time.perf_counter() - since_s)
            watched.most_bytes = max(watched.most_bytes, watched.router.rss_bytes() - before)


def large_array() -> Sequence[Finding]:
    """Post a JSON array of 60 MB."""
    body = b"[" + b"1," * (30 * MB) + b"1]"
    with _attacked() as watched:
        watched.status_of(POST + b"Content-Length: %d\r\n\r\n" % len(body), body)
    return [
        Finding("memory, MB", watched.most_bytes / MB, 3 * len(body) / MB),
        watched.slowest(0.05),
    ]


def small_chunks() -> Sequence[Finding]:
    """Post 8.4 MB in chunks of two bytes."""
    size = 8_400_000
    frames = b"2\r\nxy\r\n" * (size // 2) + b"0\r\n\r\n"
    with _attacked() as watched:
        watched.status_of(POST + b"Transfer-Encoding: chunked\r\n\r\n", frames)
    return [
        Finding("memory, MB", watched.most_bytes / MB, 3 * size / MB),
        watched.slowest(0.05),
    ]


def large_heads() -> Sequence[Finding]:
    """Send heads of 65,536, 65,537 and 100,000 bytes, and one with 101 headers."""
    begin, end = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Large: ", b"\r\n\r\n"
    with _attacked() as watched:
        status = {
            size: watched.status_of(begin + b"x" * (size - len(begin) - len(end)) + end)
            for size in (65_536, 65_537, 100_000)
        }
        many = watched.status_of(PING[:-2] + b"X: y\r\n" * 100 + b"\r\n")
    passed = sum(one == 200 for one in (status[65_537], status[100_000], many))
    return [
        Finding("heads beyond a bound that passed", passed, 0),
        Finding("heads at the bound that passed", status[65_536] == 200, 1, at_least=True),
    ]


def odd_numbers() -> Sequence[Finding]:
    """Send values that no span attribute can hold, such as a seed of 2⁶³."""
    odd = ({"seed": 1 << 63}, {"top_k": 10**400}, {"temperature": 10**400}, {"model": "\ud800"})
    with _attacked() as watched:
        answered = 0
        for values in odd:
            question = {"model": "m", "stream": True, "messages": []} | values
            body = json.dumps(question).encode()
            head = POST + b"Content-Length: %d\r\n\r\n" % len(body)
            answered += watched.status_of(head + body) == 200
    return [Finding("answered with 200", answered, len(odd), at_least=True)]


def silent_connections() -> Sequence[Finding]:
    """Open 6,000 connections from one address, or as many as possible, and send nothing."""
    with _attacked() as watched, ExitStack() as stack:
        for _ in range(6_000):
            try:
                stack.enter_context(watched.connected())
            except OSError:
                break
        health = watched.status_of(PING)
    return [
        Finding("health of a newcomer, status", health, 200),
        Finding("memory, MB", watched.most_bytes / MB, 50),
        watched.slowest(0.5),
    ]
