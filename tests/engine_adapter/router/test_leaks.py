"""Thousands of requests leave nothing behind: memory and sockets are flat."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import scripted_server as server
from scripted_server import Reply, Route
from waiting import until

from benchmarks.routing.load import ask

ROOT = Path(__file__).parents[3]
CONNECTIONS = 20


@contextmanager
def router_process(baseline: str, candidate: str) -> Iterator[tuple[str, psutil.Process]]:
    """Run a router of its own that mirrors a tenth and exports every span."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.routing.router_process", baseline, candidate, "0.1"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    try:
        yield f"{process.stdout.readline().strip()}/v1", psutil.Process(process.pid)
    finally:
        process.kill()
        process.communicate()


def open_sockets(process: psutil.Process) -> int:
    return sum(1 for one in process.net_connections() if one.status != psutil.CONN_LISTEN)


def run(url: str, requests: int) -> None:
    streams = asyncio.run(ask(url, CONNECTIONS, requests // CONNECTIONS, 0.0))
    assert len(streams) == requests
    assert all(stream.whole for stream in streams)


@pytest.mark.parametrize(
    ("requests", "first", "limit"),
    [
        (2_000, 1_000, 10_000_000),
        pytest.param(
            50_000, 20_000, 5_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(1200)]
        ),
    ],
)
def test_memory_and_sockets_are_flat(requests: int, first: int, limit: int) -> None:
    """Behind the first, with which queues fill up, requests add few bytes each and no socket."""
    chat = server.chat(["a", "b", "c"])
    cut = Reply(chat.steps[:2], headers=chat.headers, end="cut")
    with (
        server.running(Route(chat)) as baseline,
        server.running(Route(cut)) as candidate,
        router_process(baseline.url, candidate.url) as (url, process),
    ):
        run(url, first)
        memory = process.memory_info().rss
        run(url, requests)
        assert process.memory_info().rss - memory < limit
        until(lambda: open_sockets(process) <= 2 * CONNECTIONS, "copies' connections close")
