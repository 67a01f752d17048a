"""Servers under test that accept OTLP over HTTP and can report their stored spans."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from benchmarks.load.processes import family

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))  # shared by tests and benchmarks

from postgres_cluster import Postgres, server  # noqa: E402

_READY_WITHIN_S = 180.0


class TargetError(Exception):
    """A server did not start, or lost what it was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A running server."""

    url: str
    """The URL for posting traces."""
    processes: Mapping[str, Callable[[], list[psutil.Process]]]
    """The server's processes under `server`; a database's under its name."""
    stored: Callable[[], int] | None
    """Return how many spans a query finds now; None if that is unknown."""
    answers_once_stored: bool = True
    """Whether a response means that the spans are queryable; otherwise they are counted."""
    shows: Callable[[str], bool] | None
    """Return whether the server's API returns the trace with this id; None if it has no API."""
    size_bytes: Callable[[], int]
    database_url: str | None = None
    headers: Mapping[str, str]


Target = Callable[[Path], AbstractContextManager[Running]]
"""Starts a server on its own folder."""


@contextmanager
def draftgate(
    folder: Path, *, database: str, user: str | None = None, file: Path | None = None
) -> Iterator[Running]:
    """Serve a new database: `sqlite`, or `postgresql` in a private, durable cluster.

    An existing SQLite `file` is used as it is.
    """
    postgres: AbstractContextManager[Postgres | None] = nullcontext()
    if database == "postgresql":
        postgres = server(folder, durable=True, user=user)
    with postgres as cluster:
        path = file or folder / "draftgate.db"
        url = cluster.url if cluster else f"sqlite:///{path}"
        with collector(url, folder / "draftgate.log") as (address, process):
            processes: dict[str, Callable[[], list[psutil.Process]]] = {
                "server": lambda: family(process.pid)
            }
            if cluster is not None:
                processes["postgres"] = cluster.processes
            yield Running(
                url=f"{address}/v1/traces",
                processes=processes,
                stored=lambda: stored_spans(url),
                shows=lambda id_: found(f"{address}/api/v1/traces/{id_}"),
                size_bytes=cluster.size_bytes if cluster else lambda: _size(path),
                database_url=url,
                headers={},
            )


@contextmanager
def collector(
    database_url: str,
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    port: int = 0,
    options: Sequence[str] = ("--no-grpc",),
) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Run `draftgate serve`; yield its address and process, and stop it on exit."""
    command = [
        sys.executable,
        "-m",
        "draftgate",
        "serve",
        "--port",
        str(port),
        "--capture-content",
        *options,
    ]
    command += ["--database", database_url]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  # our own command
            command, stdout=output, stderr=output, cwd=ROOT, env=os.environ | dict(env or {})
        )
    try:
        wait_until(lambda: b"/v1/traces" in log.read_bytes(), process, log)
        address = re.search(rb"https?://[0-9.:]+", log.read_bytes())
        assert address is not None
        yield address.group().decode(), process
    finally:
        process.terminate()
        process.wait(timeout=60)


@contextmanager
def command(
    folder: Path,
    line: str,
    *,
    address: str,
    running: Callable[[str, Callable[[], list[psutil.Process]]], Running],
    env: Mapping[str, str] | None = None,
) -> Iterator[Running]:
    """Run a peer's command line, with `{port}`, `{port2}` and `{folder}` filled in.

    It is ready once `address` responds with anything but a 5xx.
    """
    places: dict[str, Any] = {"port": free_port(), "port2": free_port(), "folder": folder}
    log = folder / "log"
    given = {name: value.format(**places) for name, value in (env or {}).items()}
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  # what the user named
            shlex.split(line.format(**places)),
            stdout=output,
            stderr=output,
            cwd=folder,
            env=_clean_environment() | given,
        )
    try:
        wait_until(lambda: answers(address.format(**places)), process, log)
        yield running(address.format(**places), lambda: family(process.pid))
    finally:
        for member in reversed(family(process.pid)):
            member.terminate()
        process.wait(timeout=60)


def wait_until(ready: Callable[[], bool], process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait until `ready` is true; raises `TargetError` if the process ends or takes too long."""
    deadline = time.monotonic() + _READY_WITHIN_S
    while process.poll() is None and time.monotonic() < deadline:
        if ready():
            return
        time.sleep(0.1)
    raise TargetError(f"the server did not start: {log.read_text(errors='replace')[-500:]}")


def found(url: str) -> bool:
    """Return whether a GET of the URL returns a 2xx."""
    try:
        return httpx.get(url, timeout=30).is_success
    except httpx.TransportError:
        return False


def answers(url: str) -> bool:
    """Return whether a GET of the URL returns anything but a 5xx."""
    try:
        return httpx.get(url, timeout=30).status_code < 500
    except httpx.TransportError:
        return False


def count(database_url: str, sql: str) -> int:
    """Return the query's number, 0 if its table does not exist yet."""
    engine = create_engine(database_url, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            return int(connection.execute(text(sql)).scalar_one())
    except OperationalError as exc:
        if "no such table" in str(exc):
            return 0
        raise
    finally:
        engine.dispose()


def stored_spans(database_url: str) -> int:
    """Return how many spans `draftgate db stats` counts."""
    command = [sys.executable, "-m", "draftgate", "db", "stats", "--json"]
    done = subprocess.run(  # noqa: S603  # our own command
        [*command, "--database", database_url], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    return int(json.loads(done.stdout)["rows"]["span"])


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def size_of(folder: Path) -> int:
    """Return the total size of the files in the folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _size(database: Path) -> int:
    return sum(file.stat().st_size for file in database.parent.glob(f"{database.name}*"))


def _clean_environment() -> dict[str, str]:
    """Return the environment variables without Draftgate's packages, for a peer's process."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
