"""A database that cannot be written: 503 until it can, then 200, with no restart in between.

Real faults: a full file system, a folder that may not be written, another process's lock, a
PostgreSQL server that is stopped or takes no writes.
"""

import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from made_generations import generation_of
from otlp_bodies import PROTOBUF, body_of
from postgres_cluster import Postgres
from sqlalchemy import create_engine, text
from waiting import until

from collector.contract import encode

Serve = Callable[..., Any]

QUICK = {"DRAFTGATE_BUSY_TIMEOUT_S": "0.2"}
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
HOLD_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


class Sender:
    """Posts requests of 100 spans, never the same twice, and knows which were acknowledged."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=60)
        self._sent = 0
        self.acknowledged = 0

    def post(self) -> httpx.Response:
        """Post the next request."""
        numbers = range(1 + self._sent, 101 + self._sent)
        self._sent += 100
        body = body_of([encode(generation_of(n)) for n in numbers])
        answer = self._http.post("/v1/traces", content=body, headers=PROTOBUF)
        self.acknowledged += 100 * (answer.status_code == 200)
        return answer

    def is_refused(self) -> None:
        """Check that requests are told to come again, and that the process answers others."""
        for answer in [self.post() for _ in range(3)]:
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), answer.text
        assert self._http.get("/healthz").status_code == 200

    def recovers(self) -> None:
        """Check that requests are accepted again, and that all acknowledged ones are there."""
        until(lambda: self.post().status_code != 503, "accepted after the fault was gone")
        assert self.post().status_code == 200
        (rollout,) = self._http.get("/api/v1/rollouts").json()["rollouts"]
        assert rollout["candidate_generations"] == self.acknowledged
        self._http.close()


def said(server: Any) -> list[str]:
    """Stop the server and return the lines of its log that tell of storing."""
    server.process.terminate()
    _, errors = server.process.communicate()
    assert server.process.returncode == 0
    assert "Traceback" not in errors
    return [line for line in errors.splitlines() if "storing" in line]


def be_bound_by_permissions() -> None:
    """Give up root's privilege to write anything, where this process has it."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 4 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("this process may not mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_file_system(small_disk: Path, serve: Serve) -> None:
    """With no block left requests are refused; once space is free they are stored."""
    server = serve(f"sqlite:///{small_disk / 'draftgate.db'}")
    sender = Sender(server.url)
    assert sender.post().status_code == 200
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    until(lambda: sender.post().status_code != 200)  # the log may still have blocks of its own
    sender.is_refused()
    filler.unlink()
    sender.recovers()
    assert any("free some space" in line or "check disk" in line for line in said(server))


@pytest.mark.slow
def test_a_folder_made_read_only_under_a_running_collector(tmp_path: Path, serve: Serve) -> None:
    """Files that are open stay so: each request is stored or refused for now, and none is lost."""
    folder = tmp_path / "data"
    folder.mkdir()
    server = serve(f"sqlite:///{folder / 'draftgate.db'}", preexec_fn=be_bound_by_permissions)
    sender = Sender(server.url)
    assert sender.post().status_code == 200
    paths = [*folder.iterdir(), folder]
    for path in paths:
        path.chmod(0o555)
    assert {sender.post().status_code for _ in range(5)} <= {200, 503}
    for path in paths:
        path.chmod(0o755)
    sender.recovers()
    said(server)


@pytest.mark.slow
def test_connections_that_were_opened_read_only_are_not_kept(tmp_path: Path, serve: Serve) -> None:
    """Once the file may be written again, it is by every request, however many come at once."""
    server = serve(f"sqlite:///{tmp_path / 'draftgate.db'}", preexec_fn=be_bound_by_permissions)
    sender = Sender(server.url)
    assert sender.post().status_code == 200
    body = body_of([encode(generation_of(1))])
    for path in tmp_path.iterdir():
        path.chmod(0o444)
    assert any(b"readonly" in refusal for refusal in refusals_of_many(server.url, body))
    for path in tmp_path.iterdir():
        path.chmod(0o644)
    sender.recovers()
    assert refusals_of_many(server.url, body) == set()
    said(server)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["", "-shm", "-wal"])
def test_a_file_that_nobody_may_change(suffix: str, tmp_path: Path, serve: Serve) -> None:
    """A system's own bound, which holds for files that are open; SQLite maps one of them."""
    server = serve(f"sqlite:///{tmp_path / 'draftgate.db'}", env=QUICK)
    sender = Sender(server.url)
    assert sender.post().status_code == 200
    with immutable(tmp_path / f"draftgate.db{suffix}"):
        os.sync()  # or else the system would let what was written lately be written again
        found = {sender.post().status_code for _ in range(20)}
        assert found <= {200, 503}
        assert httpx.get(f"{server.url}/healthz").status_code == 200
    if suffix == "-shm":
        assert found == {503}
    sender.recovers()
    said(server)


@contextlib.contextmanager
def immutable(path: Path) -> Iterator[None]:
    """Forbid that a file is changed; skip where that cannot be."""
    if subprocess.run(["chattr", "+i", str(path)], check=False, capture_output=True).returncode:
        pytest.skip("this process, or its file system, cannot forbid that a file is changed")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", str(path)], check=True)


def refusals_of_many(url: str, body: bytes) -> set[bytes]:
    """Let twenty senders read and write at once; return the bodies of 503s, the only refusals."""

    def ask(_: int) -> set[bytes]:
        with httpx.Client(base_url=url, timeout=60) as http:
            found = set()
            for _ in range(5):
                assert http.get("/api/v1/rollouts").status_code == 200
                answer = http.post("/v1/traces", content=body, headers=PROTOBUF)
                assert answer.status_code in {200, 503}
                if answer.status_code == 503:
                    found.add(answer.content)
            return found

    with ThreadPoolExecutor(20) as pool:
        return set().union(*pool.map(ask, range(20)))


@pytest.mark.slow
def test_a_lock_held_for_long(database_url: str, serve: Serve) -> None:
    """Another process's lock, longer than the busy timeout, refuses requests until it is gone."""
    server = serve(database_url, env=QUICK)
    sender = Sender(server.url)
    assert sender.post().status_code == 200
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, database_url.removeprefix("sqlite:///")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    sender.is_refused()
    holder.communicate("let go\n")
    sender.recovers()
    assert any("another process is writing to it: try again" in line for line in said(server))


@pytest.mark.slow
def test_a_postgresql_server_that_is_stopped(postgres: Postgres, serve: Serve) -> None:
    """While nothing listens requests are refused; the collector connects anew by itself."""
    server = serve(postgres.url)
    sender = Sender(server.url)
    assert sender.post().status_code == 200
    postgres.stop()
    sender.is_refused()
    postgres.start()
    sender.recovers()
    assert said(server) != []


@pytest.mark.slow
def test_a_postgresql_server_that_takes_no_writes(postgres: Postgres, serve: Serve) -> None:
    """A server turned read-only, as a standby is, refuses until it is turned back."""
    server = serve(postgres.url)
    sender = Sender(server.url)
    assert sender.post().status_code == 200
    set_read_only(postgres, "on")
    sender.is_refused()
    set_read_only(postgres, "off")
    sender.recovers()
    assert said(server) != []


def set_read_only(postgres: Postgres, value: str) -> None:
    """Change the default of every session, open ones included, and wait until it holds."""
    writes = "?options=-cdefault_transaction_read_only%3Doff"
    engine = create_engine(postgres.url + writes, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"ALTER SYSTEM SET default_transaction_read_only = {value}"))
        connection.execute(text("SELECT pg_reload_conf()"))
    engine.dispose()
    engine = create_engine(postgres.url)

    def holds() -> bool:
        with engine.connect() as connection:
            return connection.scalar(text("SHOW default_transaction_read_only")) == value

    until(holds)
    engine.dispose()
