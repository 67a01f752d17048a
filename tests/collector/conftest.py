"""Fixtures of the collector's tests: generations, their OTLP bodies, and real servers."""

import contextlib
import os
import re
import secrets
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import clickhouse_server
import httpx
import psycopg
import pytest
from collector_in_process import http_of
from commands import command_of
from made_generations import generation_of
from postgres_cluster import Postgres, PostgresError, find_binaries, server
from sqlalchemy import make_url

from collector.contract import Span, encode
from collector.errors import StoreError
from collector.settings import Settings
from collector.store import Store
from collector.store.clickhouse import ClickHouse

ROOT = Path(__file__).parents[2]


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """Name a database that does not exist yet."""
    return f"sqlite:///{tmp_path / 'draftgate.db'}"


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[Postgres]:
    """Start a durable PostgreSQL cluster of the test's own; skip where that cannot be."""
    try:
        Store.open("postgresql://127.0.0.1:1/none").close()
    except StoreError as exc:
        if "not a supported kind of database" in str(exc):
            pytest.skip("the store does not support PostgreSQL")
    skip_without_postgres()
    with server(tmp_path / "cluster", durable=True) as started:
        yield started


def skip_without_postgres() -> None:
    try:
        find_binaries()
    except PostgresError as exc:
        if os.environ.get("CI") == "true":
            pytest.fail(str(exc))
        pytest.skip(str(exc))


@pytest.fixture(scope="session")
def new_database_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Name a database that holds nothing yet, of `sqlite` or `postgresql`.

    Those of PostgreSQL share one cluster, which starts with the first of them.
    """
    with contextlib.ExitStack() as stack:
        started: list[str] = []

        def new(kind: str) -> str:
            if kind == "sqlite":
                return f"sqlite:///{tmp_path_factory.mktemp('sqlite') / 'draftgate.db'}"
            if not started:
                skip_without_postgres()
                folder = tmp_path_factory.mktemp("postgresql")
                started.append(stack.enter_context(server(folder / "cluster")).url)
            name = f"draftgate_{secrets.token_hex(4)}"
            with psycopg.connect(started[0], autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
            return started[0].rpartition("/")[0] + f"/{name}"

        yield new


@pytest.fixture(scope="session")
def new_analytics_url() -> Iterator[Callable[[], str]]:
    """Name a ClickHouse database that holds nothing yet: chdb's, or a real server's.

    A server's where DRAFTGATE_TEST_CLICKHOUSE_URL names one, such as clickhousedb://host:8123.
    """
    given = os.environ.get("DRAFTGATE_TEST_CLICKHOUSE_URL")
    client: Any = pytest.importorskip("clickhouse_connect.driver")
    if given is None:
        pytest.importorskip("chdb")
        # What is held in memory ends with the last connection.
        held = client.create_client(interface="chdb")
        yield lambda: f"clickhousedb:///draftgate_{secrets.token_hex(4)}?interface=chdb"
        held.close()
        return
    base = make_url(given)
    names: list[str] = []

    def new() -> str:
        names.append(f"draftgate_{secrets.token_hex(4)}")
        return base.set(database=names[-1]).render_as_string(hide_password=False)

    yield new
    with contextlib.closing(ClickHouse.open(new())) as server:
        for name in names:
            server.command(f"DROP DATABASE {name}")


@pytest.fixture(scope="session")
def new_http_analytics_url(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[], str]]:
    """Name a database that holds nothing yet on a server that is spoken to over HTTP."""
    pytest.importorskip("clickhouse_connect.driver")
    pytest.importorskip("chdb")
    with clickhouse_server.running(tmp_path_factory.mktemp("clickhouse") / "data") as server:
        yield lambda: server.url(f"draftgate_{secrets.token_hex(4)}")


@pytest.fixture(scope="session")
def new_settings(
    new_database_url: Callable[[str], str], request: pytest.FixtureRequest
) -> Callable[[str], Settings]:
    """Make settings of an empty store.

    Of `sqlite`, `postgresql`, `clickhouse` or, over HTTP whatever the first is, `clickhouse-http`.
    """
    fixtures = {
        "clickhouse": "new_analytics_url",
        "clickhouse-http": "new_http_analytics_url",
    }

    def new(kind: str) -> Settings:
        if kind not in fixtures:
            return Settings(database_url=new_database_url(kind), capture_content=True)
        new_url: Callable[[], str] = request.getfixturevalue(fixtures[kind])
        return Settings(
            database_url=new_database_url("sqlite"), analytics_url=new_url(), capture_content=True
        )

    return new


@pytest.fixture(params=["sqlite", "postgresql"])
def any_database_url(request: pytest.FixtureRequest, new_database_url: Callable[[str], str]) -> str:
    """Name an empty database of each kind."""
    return new_database_url(request.param)


@pytest.fixture
def serve() -> Iterator[Callable[..., "Server"]]:
    """Start `draftgate serve` in a process of its own; every one is ended with the test."""
    with running_servers() as start:
        yield start


@pytest.fixture(scope="module")
def module_serve() -> Iterator[Callable[..., "Server"]]:
    """Start servers that live as long as the module's tests."""
    with running_servers() as start:
        yield start


class Server(NamedTuple):
    """A running `draftgate serve`."""

    url: str
    grpc: str
    """Host and port."""
    process: subprocess.Popen[str]

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()
        return self.process.returncode

    def kill(self) -> None:
        """Send SIGKILL."""
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def running_servers() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(database_url: str, *, env: Mapping[str, str] | None = None, **popen: Any) -> Server:
        process = subprocess.Popen(
            command_of("serve", "--database", database_url, "--port", "0", "--grpc-port", "0"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | dict(env or {}),
            cwd=ROOT,
            **popen,
        )
        assert process.stdout is not None
        lines = process.stdout.readline() + process.stdout.readline()
        found = re.search(r"HTTP at (https?://[0-9.:]+)/.*\nOTLP over gRPC at ([0-9.:]+)", lines)
        if found is None:
            pytest.fail(f"no addresses in {lines!r}; stderr: {process.communicate()[1]}")
        servers.append(Server(found[1], found[2], process))
        return servers[-1]

    try:
        yield start
    finally:
        for server in servers:
            if server.process.poll() is None:
                server.kill()


@pytest.fixture(scope="session")
def odd_span() -> Span:
    """Make a span that uses every kind of attribute value, and is no generation."""
    return Span(
        trace_id="0af7651916cd43dd8448eb211c80319c",
        span_id="b7ad6b7169203331",
        parent_span_id="00f067aa0ba902b7",
        name="agent step",
        kind="server",
        start_unix_ns=1,
        end_unix_ns=2**63 - 1,
        status=encode(generation_of(error_type="timeout")).status,
        status_message="gave up",
        scope_name="agents",
        attributes={
            "text": "naïve ☃ \0",
            "flag": True,
            "smallest": -(2**63),
            "largest": 2**63 - 1,
            "ratio": 0.1,
            "nothing": None,
            "infinite": (float("inf"), float("-inf")),
            "raw": b"\x00\xff",
            "list": ("a", 1, (), None),
            "map": {"bytes_hex": "zz", "inner": {"double": "NaN"}},
        },
        resource={"service.name": "agent", "gpu.count": 2},
    )


@pytest.fixture
def http(database_url: str) -> Iterator[httpx.Client]:
    """Speak HTTP to the application in this process, on a database of its own."""
    with http_of(Settings(database_url=database_url, capture_content=True)) as client:
        yield client
