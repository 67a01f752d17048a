"""Start a collector, attack it over HTTP or gRPC, and measure the effect."""

import contextlib
import re
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from certificates import self_signed

from benchmarks.attacks.findings import Finding
from benchmarks.attacks.health_watch import watching
from benchmarks.load.targets import collector

WITHIN_S = 0.5
MEMORY_WITHIN_MIB = 50.0
SECONDS = 5.0


@dataclass(frozen=True)
class Listener:
    """Address of a collector's HTTP or gRPC listener; `tls` if it uses TLS."""

    address: tuple[str, int]
    tls: ssl.SSLContext | None = None

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """Yield a connection, and ignore an `OSError`: the collector may close it, as it should."""
        with contextlib.suppress(OSError), self.opened() as connection:
            yield connection

    def opened(self, *, shakes_hands: bool = True) -> socket.socket:
        """Return a connection; raises `OSError` if it is closed at once."""
        bare = socket.create_connection(self.address, timeout=5)
        if self.tls is None or not shakes_hands:
            return bare
        return self.tls.wrap_socket(bare)


Attack = Callable[[Listener, float], None]
"""Attacks a listener for the given number of seconds."""


def until(seconds: float) -> Iterator[None]:
    """Yield repeatedly until the seconds have passed."""
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        yield


def hold(
    listener: Listener, sent: list[bytes], seconds: float, *, shakes_hands: bool = True
) -> None:
    """Open one connection for each item, send the item on it, and keep all of them open."""
    with contextlib.ExitStack() as stack:
        for data in sent:
            with contextlib.suppress(OSError):
                connection = stack.enter_context(listener.opened(shakes_hands=shakes_hands))
                connection.sendall(data)
        time.sleep(seconds)


def attack_http(attack: Attack, memory_mib: float, *, tls: bool = False) -> list[Finding]:
    """Attack the HTTP listener of a new collector."""
    with started("--no-grpc", tls=tls) as (url, pid, _), watching(pid, url) as observation:
        time.sleep(1)
        attack(Listener(_address(url), _context() if tls else None), SECONDS)
        time.sleep(1)
        found = observation()
    return [
        Finding("slowest /healthz, s", found.health_s, WITHIN_S),
        Finding("/healthz unanswered", found.unanswered, 0),
        Finding("memory beyond the start's, MiB", found.memory_mib, memory_mib),
    ]


def attack_grpc(
    attack: Attack, memory_mib: float, *, tls: bool = False, is_http: bool = False
) -> list[Finding]:
    """Attack the gRPC listener of a new collector, or the one for HTTP, while another exports."""
    with (
        started(tls=tls) as (url, pid, grpc_address),
        watching(pid, url, grpc_address) as observation,
    ):
        time.sleep(1)
        context = _context("h2") if tls else None
        attack(Listener(_address(url if is_http else f"grpc://{grpc_address}"), context), SECONDS)
        time.sleep(1)
        found = observation()
    return [
        Finding("slowest /healthz, s", found.health_s, WITHIN_S),
        Finding("slowest empty export over gRPC, s", found.export_s, 2 * WITHIN_S),
        Finding("unanswered", found.unanswered + found.refused, 0),
        Finding("memory beyond the start's, MiB", found.memory_mib, memory_mib),
    ]


@contextlib.contextmanager
def started(*options: str, tls: bool = False) -> Iterator[tuple[str, int, str]]:
    """Run a collector; yield its URL, process id and gRPC address."""
    with tempfile.TemporaryDirectory(prefix="draftgate-") as name:
        folder, log = Path(name), Path(name) / "draftgate.log"
        if tls:
            cert, key = self_signed(folder)
            options += ("--tls-cert", str(cert), "--tls-key", str(key))
        if "--no-grpc" not in options:
            options += ("--grpc-port", "0")
        url = f"sqlite:///{folder / 'draftgate.db'}"
        with collector(url, log, options=options) as (address, process):
            found = re.search(r"gRPC at ([0-9.:]+)", log.read_text())
            yield address, process.pid, found[1] if found else ""


def _context(*protocols: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 0
