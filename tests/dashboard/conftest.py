"""Databases that the pages are shown: seeded, undecided, empty, of one arm."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from dashboard_seed import seed
from dashboard_seed.generations import FATES, generation
from dashboard_seed.verdicts import verdict
from made_verdicts import resting_on
from otlp_bodies import export_request
from playwright.sync_api import expect
from waiting import until

from collector.client import Client
from collector.contract import Arm, encode

SERVE = [sys.executable, "-m", "draftgate", "serve", "--no-grpc"]
Serving = Callable[..., AbstractContextManager[str]]


@pytest.fixture(scope="session", autouse=True)
def patience() -> None:
    """Let pages take their time on a busy machine: no test is about how fast they are."""
    expect.set_options(timeout=60_000)


@pytest.fixture(scope="session")
def seeded_database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of a SQLite file with three rollouts in it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('seeded')}/seeded.db"
    with Client.local(url, capture_content=True) as client:
        seed(client)
    return url


@pytest.fixture
def undecided_database(tmp_path: Path) -> str:
    """Return the URL of a SQLite file with one pair of one rollout, and no verdict."""
    url = f"sqlite:///{tmp_path}/undecided.db"
    post(url, *Arm)
    return url


@pytest.fixture
def one_arm_database(tmp_path: Path) -> str:
    """Return the URL of a SQLite file to which the baseline alone has answered."""
    url = f"sqlite:///{tmp_path}/one-arm.db"
    post(url, Arm.BASELINE)
    return url


def post(url: str, *arms: Arm) -> None:
    """Store one generation of each arm."""
    sides = [generation(FATES[0], arm, "chat", 1, 0) for arm in arms]
    with Client.local(url, capture_content=True) as client:
        client.post_traces(export_request([encode(side) for side in sides]).SerializeToString())


@pytest.fixture
def decide(undecided_database: str) -> Callable[[], None]:
    """Return what posts a verdict on the undecided rollout."""

    def decide() -> None:
        with Client.local(undecided_database, capture_content=True) as client:
            client.post_verdict(resting_on(client, verdict(FATES[0])))

    return decide


@pytest.fixture
def empty_database(tmp_path: Path) -> str:
    """Return the URL of a SQLite file without any rollout."""
    return f"sqlite:///{tmp_path}/empty.db"


@contextmanager
def _serve(database_url: str, port: int, *options: str) -> Iterator[str]:
    url = f"http://127.0.0.1:{port}"
    command = [*SERVE, "--database", database_url, "--port", str(port), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            with Client(url) as client:
                until(client.health, "the collector answers")
            yield url
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def serving() -> Serving:
    """Return what serves a database by a collector of its own, and gives its URL."""
    return _serve
