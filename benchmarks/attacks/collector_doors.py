"""What somebody without a key can do to a collector."""

import contextlib
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from backports import zstd

from benchmarks.attacks.findings import Finding
from benchmarks.load.targets import draftgate

HEALTH_WITHIN_S = 0.5
MEMORY_WITHIN_MIB = 50.0
BODY_MEMORY_WITHIN_MIB = 300.0
SECONDS = 5.0
_MIB = 2**20
_EVERY_S = 0.1

Address = tuple[str, int]


class _Watch:
    """Asks after health, each time on a new connection, and reads the memory meanwhile."""

    def __init__(self, address: Address, process: psutil.Process) -> None:
        self._address, self._process = address, process
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._before: int = process.memory_info().rss
        self._most = self._before
        self.worst_s, self.unanswered = 0.0, 0

    @property
    def memory_mib(self) -> float:
        return float((self._most - self._before) / _MIB)

    def __enter__(self) -> "_Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(_EVERY_S):
            begun_s = time.perf_counter()
            connection = HTTPConnection(*self._address, timeout=30)
            try:
                connection.request("GET", "/healthz")
                connection.getresponse().read()
            except OSError:
                self.unanswered += 1
            finally:
                connection.close()
            self.worst_s = max(self.worst_s, time.perf_counter() - begun_s)
            self._most = max(self._most, self._process.memory_info().rss)


def long_heads(address: Address, seconds: float) -> None:
    """Send 150 MB of headers on one connection, again and again."""
    line = b"X-Long: " + b"x" * 8000 + b"\r\n"
    for _ in _until(seconds):
        with _connected(address) as bare:
            bare.sendall(b"GET /healthz HTTP/1.1\r\n")
            for _ in range(150 * _MIB // len(line)):
                bare.sendall(line)


def growing_header(address: Address, seconds: float) -> None:
    """Send one header that does not end."""
    for _ in _until(seconds):
        with _connected(address) as bare:
            bare.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: ")
            for _ in range(20_000):
                bare.sendall(b"x" * 4096)


def silent(address: Address, seconds: float) -> None:
    """Open 1,400 connections and say nothing."""
    _hold(address, [b""] * 1400, seconds)


def half_heads(address: Address, seconds: float) -> None:
    """Open 1,400 connections and send half a head on each."""
    _hold(address, [b"GET /healthz HTTP/1.1\r\nHost: x\r\n"] * 1400, seconds)


def half_bodies(address: Address, seconds: float) -> None:
    """Open 1,400 connections and send the half of a body of 200 KB on each."""
    head = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n"
    head += b"Content-Type: application/x-protobuf\r\n\r\n"
    _hold(address, [head + bytes(100_000)] * 1400, seconds)


def many_idle(address: Address, seconds: float) -> None:
    """Open 10,000 connections."""
    _hold(address, [b""] * 10_000, seconds)


def behind_one_another(address: Address, seconds: float) -> None:
    """Send requests without end, and read no answer."""
    for _ in _until(seconds):
        with _connected(address) as bare:
            for _ in range(2000):
                bare.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)


def impatient(address: Address, seconds: float) -> None:
    """Have 250 senders send what is refused again at once, whatever Retry-After says."""
    body = bytes(400_000)
    head = f"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    request = f"{head}Content-Type: application/x-protobuf\r\n\r\n".encode() + body

    def work() -> None:
        for _ in _until(seconds):
            with _connected(address) as bare:
                bare.settimeout(30)
                for _ in _until(seconds):
                    bare.sendall(request)
                    if not bare.recv(4096):
                        break

    threads = [threading.Thread(target=work) for _ in range(250)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def empty_spans(address: Address, seconds: float) -> None:
    """Post a kilobyte of zstd that stands for 10 million empty spans."""
    _post_zstd(address, _field(1, _field(2, b"\x12\x00" * (10 * _MIB))), seconds)


def skippable_frames(address: Address, seconds: float) -> None:
    """Post 2 MB of frames that hold nothing."""
    _post(address, b"\x53\x2a\x4d\x18\0\0\0\0" * (2 * _MIB // 8), seconds)


ATTACKS: dict[Callable[[Address, float], None], float] = {
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
"""Each with the memory that it may take."""


def attack_by(attack: Callable[[Address, float], None]) -> Sequence[Finding]:
    """Attack a collector that was just started, for some seconds."""
    with (
        tempfile.TemporaryDirectory(prefix="draftgate-") as folder,
        draftgate(Path(folder), database="sqlite") as target,
    ):
        url = urlsplit(target.url)
        address = (url.hostname or "127.0.0.1", url.port or 80)
        with _Watch(address, target.processes["server"]()[0]) as watch:
            time.sleep(1)
            attack(address, SECONDS)
            time.sleep(1)
    return [
        Finding("slowest /healthz, s", watch.worst_s, HEALTH_WITHIN_S),
        Finding("/healthz unanswered", watch.unanswered, 0),
        Finding("memory beyond the start's, MiB", watch.memory_mib, ATTACKS[attack]),
    ]


def _until(seconds: float) -> Iterator[None]:
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        yield


@contextlib.contextmanager
def _connected(address: Address) -> Iterator[socket.socket]:
    """Give a connection; that it is ended by the other side is what is hoped for."""
    with contextlib.suppress(OSError, ssl.SSLError), socket.create_connection(address) as bare:
        yield bare


def _hold(address: Address, said: list[bytes], seconds: float) -> None:
    with contextlib.ExitStack() as stack:
        for words in said:
            with contextlib.suppress(OSError):
                bare = stack.enter_context(socket.create_connection(address, timeout=5))
                bare.sendall(words)
        time.sleep(seconds)


def _post_zstd(address: Address, body: bytes, seconds: float) -> None:
    _post(address, zstd.compress(body), seconds)


def _post(address: Address, body: bytes, seconds: float) -> None:
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "zstd"}
    for _ in _until(seconds):
        connection = HTTPConnection(*address, timeout=60)
        connection.request("POST", "/v1/traces", body, headers)
        connection.getresponse().read()
        connection.close()


def _field(number: int, value: bytes) -> bytes:
    size, length = len(value), b""
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + value
