"""The command as a process beside a collector as a process: killed, doubled, and left alone."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import until

from collector.client import Client
from collector.contract import Switch, Watch
from tests.evals.watch.conftest import RULES, Traffic

WITHIN_S = 200.0


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(RULES.format(design="mirror"))
    return path


@contextmanager
def process(*arguments: str | Path, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    environment = os.environ | {"DRAFTGATE_REQUIRE_KEYS": "0"}
    with log.open("ab") as output:
        command = [sys.executable, "-m", "draftgate", *map(str, arguments)]
        one = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        try:
            yield one
        finally:
            one.kill()
            one.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def state(client: Client) -> Watch | None:
    found = client.watches("k4")
    return found[0].watch if found else None


def state_at(client: Client, n: int) -> Watch | None:
    found = state(client)
    counted = set() if found is None else {c.n for c in found.cells if c.cohort is None}
    return found if counted == {n} else None


def pairs(client: Client) -> int:
    found = state(client)
    return 0 if found is None else found.pairs


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_doubled_and_cut_off(tmp_path: Path, policy_file: Path) -> None:
    """SIGKILL, two at once, and a collector that goes away: every pair counts once, off once."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    serve = ("serve", "--port", str(port), "--no-grpc",
             "--database", f"sqlite:///{tmp_path / 'draftgate.db'}")  # fmt: skip
    watch = ("watch", "k4", "--policy", policy_file, "--collector", url, "--every", "0.1")
    logs = [tmp_path / f"watch-{i}.log" for i in range(3)]
    slow = {"ttft_s": 0.8}
    with Client(url) as client, process(*serve, log=tmp_path / "serve.log") as collector:
        until(client.health, "the collector answers")
        traffic = Traffic(client)
        traffic.pairs(range(40))
        with process(*watch, log=logs[0]) as first:
            until(lambda: pairs(client) == 40, "40 pairs are counted")
            traffic.pairs(range(40, 60))
            first.send_signal(signal.SIGKILL)
            first.wait()
        collector.send_signal(signal.SIGKILL)
        collector.wait()
    with (
        Client(url) as client,
        process(*watch, log=logs[1]) as second,
        process(*watch, log=logs[2]) as third,
    ):
        traffic = Traffic(client)
        until(lambda: b"waiting up to" in logs[1].read_bytes(), "the second waits")
        with process(*serve, log=tmp_path / "serve.log"):
            until(client.health, "the collector answers again")
            for start in range(60, 160, 20):
                traffic.pairs(range(start, start + 20), candidate=slow)
            until(lambda: client.switch("k4"), "the switch is set off")
            third.send_signal(signal.SIGKILL)
            traffic.pairs(range(160, 200), candidate=slow)
            # A pair counts when it is there, and in a cell of scores when those are there too.
            last = until(lambda: state_at(client, 200), "200 pairs are counted in every cell")
            second.send_signal(signal.SIGINT)
            assert second.wait(timeout=WITHIN_S) == 1
            assert [event.state for event in client.switch("k4")] == [Switch.OFF]
            assert len(last.actions) == 1


def test_once_says_what_is_there(tmp_path: Path, policy_file: Path) -> None:
    """Undecided is 3, harm is 1, and what cannot be used is 2; a dry run leaves no trace."""
    database = f"sqlite:///{tmp_path / 'draftgate.db'}"
    log = tmp_path / "log"
    once = ("watch", "k4", "--policy", policy_file, "--database", database, "--once")

    def ended(*arguments: str | Path) -> int:
        with process(*arguments, log=log) as one:
            return one.wait(timeout=WITHIN_S)

    with Client.local(database) as client:
        Traffic(client).pairs(range(20))
    assert ended(*once) == 3
    with Client.local(database) as client:
        Traffic(client).pairs(range(100, 200), candidate={"ttft_s": 0.8})
    assert ended(*once, "--dry-run", "--json") == 1
    with Client.local(database) as client:
        assert client.switch("k4") == ()
    assert ended(*once) == 1
    with Client.local(database) as client:
        assert client.switch("k4")[0].state is Switch.OFF
    assert ended("watch", "k9", *once[2:]) == 2
    said = log.read_text()
    assert "no rollout 'k9'" in said
    assert "the switch is set off" in said
    assert '"outcome": "fail"' in said


def test_a_mistyped_name_ends_the_watch(tmp_path: Path, policy_file: Path) -> None:
    """Not at once, since traffic may come later, and not never."""
    watch = ("watch", "k5", "--policy", policy_file, "--every", "0.1", "--wait", "0.01")
    database = ("--database", f"sqlite:///{tmp_path / 'draftgate.db'}")
    with process(*watch, *database, log=tmp_path / "log") as one:
        assert one.wait(timeout=WITHIN_S) == 2
    words = (tmp_path / "log").read_text().splitlines()
    assert "waiting up to 0.01 s: " in words[0]
    assert words[-1].startswith("error: ")
    assert "k5" in words[-1]


def test_a_collector_that_never_comes_ends_the_watch(tmp_path: Path) -> None:
    """It says once for what it waits, and ends as for unusable input."""
    url = f"http://127.0.0.1:{free_port()}"
    watch = ("watch", "k5", "--collector", url, "--every", "0.1", "--wait", "0.3")
    with process(*watch, log=tmp_path / "log") as one:
        assert one.wait(timeout=WITHIN_S) == 2
    waits, error = (tmp_path / "log").read_text().splitlines()
    assert waits.startswith(f"waiting up to 0.3 s: {url}: nothing answers")
    assert error.startswith(f"error: {url}: nothing answers")
