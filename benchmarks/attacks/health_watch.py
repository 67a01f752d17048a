"""Poll a collector's health from a separate process, and measure the collector's memory.

    python -m benchmarks.attacks.health_watch PID URL [GRPC]

Each poll opens a new connection. It stops when standard input ends, and then prints JSON. It is a
separate process because an attack's threads would delay it in their own.
"""

import contextlib
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple
from urllib.parse import urlsplit

import grpc
import psutil

ROOT = Path(__file__).resolve().parents[2]
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_EVERY_S = 0.1
_TIMEOUT_S = 30


class Observation(NamedTuple):
    """Latencies, failures and memory of a collector under attack."""

    health_s: float
    """The slowest response to `/healthz`."""
    unanswered: int
    """Failed requests to `/healthz`."""
    export_s: float
    """The slowest response to an empty export over gRPC; 0 if none was sent."""
    refused: int
    """Failed exports over gRPC."""
    memory_mib: float
    """Largest increase of memory since the start."""


@contextlib.contextmanager
def watching(pid: int, url: str, grpc_address: str = "") -> Iterator[Callable[[], Observation]]:
    """Watch a collector; yield a function that ends the watch and returns the observation."""
    command = [sys.executable, "-m", "benchmarks.attacks.health_watch", str(pid), url, grpc_address]
    with subprocess.Popen(  # noqa: S603  # ourselves
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "watching\n"
        yield lambda: Observation(**json.loads(process.communicate()[0]))


def main() -> None:
    """Watch until standard input ends."""
    pid, url, grpc_address = sys.argv[1:]
    process = psutil.Process(int(pid))
    before = most = process.memory_info().rss
    over = Event()
    pollers = [_Poller(lambda: _get_health(url), over)]
    if grpc_address:
        channel = _trusting(url, grpc_address) if url.startswith("https") else _plain
        pollers.append(_Poller(lambda: _export(channel(grpc_address)), over))
    print("watching", flush=True)
    Thread(target=_wait_for_end, args=(over,)).start()
    while not over.wait(_EVERY_S):
        most = max(most, process.memory_info().rss)
    for one in pollers:
        one.thread.join()
    health, export = pollers[0], pollers[-1] if grpc_address else None
    observation = Observation(
        health.worst_s,
        health.failed,
        export.worst_s if export else 0.0,
        export.failed if export else 0,
        (most - before) / 2**20,
    )
    print(json.dumps(observation._asdict()))


def _wait_for_end(over: Event) -> None:
    sys.stdin.read()
    over.set()


class _Poller:
    """Sends a request repeatedly from a thread, until `over` is set."""

    def __init__(self, request: Callable[[], None], over: Event) -> None:
        self._request, self._over = request, over
        self.worst_s, self.failed = 0.0, 0
        self.thread = Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while not self._over.wait(_EVERY_S):
            begun_s = time.perf_counter()
            try:
                self._request()
            except (OSError, grpc.RpcError):
                self.failed += 1
            self.worst_s = max(self.worst_s, time.perf_counter() - begun_s)


def _get_health(url: str) -> None:
    parts = urlsplit(url)
    assert parts.hostname is not None
    if parts.scheme == "https":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection: HTTPConnection = HTTPSConnection(
            parts.hostname, parts.port, timeout=_TIMEOUT_S, context=context
        )
    else:
        connection = HTTPConnection(parts.hostname, parts.port, timeout=_TIMEOUT_S)
    with contextlib.closing(connection):
        connection.request("GET", "/healthz")
        connection.getresponse().read()


_NEW_CONNECTION = ("grpc.use_local_subchannel_pool", 1)


def _plain(address: str) -> grpc.Channel:
    return grpc.insecure_channel(address, [_NEW_CONNECTION])


def _trusting(url: str, address: str) -> Callable[[str], grpc.Channel]:
    """Return what connects with TLS to the server that has the certificate of this URL."""
    host, port = address.rsplit(":", 1)
    parts = urlsplit(url)
    certificate = ssl.get_server_certificate((parts.hostname or host, parts.port or int(port)))
    trusted = grpc.ssl_channel_credentials(certificate.encode())
    return lambda where: grpc.secure_channel(where, trusted, [_NEW_CONNECTION])


def _export(opened: grpc.Channel) -> None:
    with opened as channel:
        export: Callable[..., bytes] = channel.unary_unary(EXPORT)
        export(b"", timeout=_TIMEOUT_S)


if __name__ == "__main__":
    main()
