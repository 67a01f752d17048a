"""Thousands of requests leave nothing behind: memory and sockets are flat."""

import asyncio
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
import scripted_server as server
from scripted_server import Reply, Route
from waiting import until

from benchmarks.routing.load import ask

ROOT = Path(__file__).parents[3]
CONNECTIONS = 20
FILLING, ROUNDS = 3, 6
"""Rounds that may fill queues and the allocator's arenas, and those that are judged."""


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
    ("requests", "bytes_each"),
    [
        (500, 5_000),
        pytest.param(10_000, 200, marks=[pytest.mark.slow, pytest.mark.timeout(1200)]),
    ],
)
def test_memory_and_sockets_are_flat(requests: int, bytes_each: int) -> None:
    """Rounds of requests add few bytes each and no socket.

    The median of the rounds is judged: a leak grows in every round, while what fills up once grows
    in one or two, sooner or later by the machine.
    """
    chat = server.chat(["a", "b", "c"])
    cut = Reply(chat.steps[:2], headers=chat.headers, end="cut")
    with (
        server.running(Route(chat)) as baseline,
        server.running(Route(cut)) as candidate,
        router_process(baseline.url, candidate.url) as (url, process),
    ):
        memory = []
        for _ in range(FILLING + ROUNDS):
            run(url, requests)
            memory.append(process.memory_info().rss)
        judged = memory[FILLING - 1 :]
        growth = statistics.median(after - before for before, after in pairwise(judged))
        assert growth / requests < bytes_each, memory
        until(lambda: open_sockets(process) <= 2 * CONNECTIONS, "copies' connections close")
