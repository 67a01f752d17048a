"""A private PostgreSQL cluster: in a folder of its own, on a port of its own, gone at the end.

    with cluster(folder) as url: ...
    with server(folder) as postgres: postgres.kill(); postgres.start()

Tests run it without fsync; benchmarks pass `durable=True`. PostgreSQL refuses to run as root, so
root runs it as an unprivileged user that keeps one capability: to pass through root's folders.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

_READY_WITHIN_S = 200.0
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class PostgresError(Exception):
    """PostgreSQL is not installed, or did not start; the message ends with its output."""


class Postgres:
    """One cluster: its server can be stopped, killed and started again."""

    def __init__(self, folder: Path, *, durable: bool, user: str | None) -> None:
        self._binaries = find_binaries()
        self._data = folder / "postgres"
        self._log = folder / "postgres.log"
        self._durable = durable
        self._as_user = _privileges(user)
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._data.mkdir(mode=0o700)
        if self._as_user:
            shutil.chown(self._data, user or _unprivileged())
        self._run("initdb", "-D", str(self._data), "-U", "draftgate", "-A", "trust", "-E", "UTF8")
        self.start()
        self._run("createdb", *self._address(), "draftgate")

    @property
    def url(self) -> str:
        """SQLAlchemy's URL of the empty database `draftgate`."""
        return f"postgresql://draftgate@127.0.0.1:{self._port}/draftgate"

    def start(self, *settings: str) -> None:
        """Start the server and return once it answers; `settings` are `name=value`."""
        every = (
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            f"port={self._port}",
            *(() if self._durable else _FAST),
            *settings,
        )
        options = [word for setting in every for word in ("-c", setting)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._as_user, str(self._binaries / "postgres"), "-D", str(self._data), *options],
                stdout=log,
                stderr=log,
                start_new_session=True,  # an interrupt at the terminal is ours to pass on
            )
        self._wait_until_ready()

    def stop(self) -> None:
        """Shut the server down, ending every connection; does nothing if it is down."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
            self._process = None

    def kill(self) -> None:
        """End every process of the server by SIGKILL, as a crash of the machine would."""
        processes = self.processes()
        for process in processes:
            process.kill()
        psutil.wait_procs(processes, timeout=30)
        assert self._process is not None
        self._process.wait()
        self._process = None

    def processes(self) -> list[psutil.Process]:
        """Return the server's processes, the first of which started the others."""
        assert self._process is not None
        first = psutil.Process(self._process.pid)
        return [first, *first.children(recursive=True)]

    def size_bytes(self) -> int:
        """Return the size of the cluster's tables and indexes, without its log."""
        return sum(file.stat().st_size for file in (self._data / "base").rglob("*"))

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_WITHIN_S
        ready = [str(self._binaries / "pg_isready"), "-q", *self._address()]
        assert self._process is not None
        while self._process.poll() is None and time.monotonic() < deadline:
            if subprocess.run(ready, check=False).returncode == 0:
                return
            time.sleep(0.05)
        self.stop()
        raise PostgresError(f"PostgreSQL did not start: {self._log.read_text()[-500:]}")

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._as_user, str(self._binaries / name), *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise PostgresError(f"{name} failed: {done.stderr.strip()[-500:]}")

    def _address(self) -> tuple[str, ...]:
        return ("-h", "127.0.0.1", "-p", str(self._port), "-U", "draftgate")


@contextmanager
def server(folder: Path, *, durable: bool = False, user: str | None = None) -> Iterator[Postgres]:
    """Give a running cluster; `user` is who it runs as, where root starts it."""
    postgres = Postgres(folder, durable=durable, user=user)
    try:
        yield postgres
    finally:
        postgres.stop()


@contextmanager
def cluster(folder: Path, *, durable: bool = False, user: str | None = None) -> Iterator[str]:
    """Give the URL of an empty database in a running cluster."""
    with server(folder, durable=durable, user=user) as postgres:
        yield postgres.url


def find_binaries() -> Path:
    """Return the folder of `initdb` and `postgres`: the newest of Debian's, or the PATH's."""
    found = shutil.which("initdb")
    debian = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: int(path.parts[-3]) if path.parts[-3].isdecimal() else 0,
    )
    if found is None and not debian:
        raise PostgresError("no initdb on the PATH (Debian: apt-get install postgresql)")
    return Path(found).resolve().parent if found else debian[-1].parent


def _privileges(user: str | None) -> list[str]:
    """Return a command prefix that drops root, which PostgreSQL refuses; empty without root."""
    if os.geteuid() != 0:
        return []
    entry = pwd.getpwnam(user or _unprivileged())
    return [
        *("setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"),
        # A test's folder may be root's alone, and its path has to be walked.
        *("--inh-caps=+dac_override", "--ambient-caps=+dac_override"),
    ]


def _unprivileged() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
