"""The follower of switch and ramp, at a real collector that is killed, restarted, and replaced."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from made_verdicts import made_verdict, registration, resting_on, send_pairs
from waiting import until

from collector.client import Client, ClientError
from collector.contract import Outcome, RampChange, StoredVerdict, Switch
from engine_adapter.router import known_state
from engine_adapter.router.known_state import KnownState
from engine_adapter.router.ramp import RampSection
from engine_adapter.router.switch_follower import SwitchFollower

ROOT = Path(__file__).parents[3]


class Collector:
    """`draftgate serve` on one port and database, started and killed at will."""

    def __init__(self, port: int, database: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.port, self.database = port, database
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        given = ["serve", "--database", f"sqlite:///{self.database}", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "draftgate", *given, "--no-grpc"],
            stdout=subprocess.DEVNULL,
            cwd=ROOT,
        )
        until(self.answers)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def answers(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/healthz").is_success
        return False

    def client(self) -> Client:
        return Client(self.url, timeout_s=5)

    def turn(self, state: Switch) -> int:
        with self.client() as client:
            return client.set_switch("k4", state, reason="r").id


@pytest.fixture
def collector(tmp_path: Path, free_port: Callable[[], int]) -> Iterator[Collector]:
    """Start a collector; whatever of it runs at the end is killed."""
    started = Collector(free_port(), tmp_path / "dg.db")
    started.start()
    yield started
    started.kill()


@contextmanager
def following(
    collector: Collector,
    file: Path,
    section: RampSection | None = None,
    confirm: Callable[[StoredVerdict], str | None] = lambda _: None,
    client: type[Client] = Client,
) -> Iterator[SwitchFollower]:
    def opened(timeout_s: float) -> Client:
        return client(collector.url, timeout_s=timeout_s)

    with SwitchFollower("k4", opened, file=file, ramp_section=section, confirm=confirm) as follower:
        assert follower.wait_for_answer(30) is (follower.trouble is None)
        yield follower


def test_a_flip_is_known_before_a_clock_of_a_second_ends(
    collector: Collector, tmp_path: Path
) -> None:
    """Each of 20 flips is learnt before the long poll that waits for it would have ended."""
    asked: list[float] = []

    class Counting(Client):
        def switch(self, *given: Any, **named: Any) -> Any:
            asked.append(named["wait_s"])
            return super().switch(*given, **named)

    with following(collector, tmp_path / "s", client=Counting) as follower:
        for n in range(20):
            wanted = (Switch.ON, Switch.OFF)[n % 2]
            id_ = collector.turn(wanted)
            until(lambda id_=id_: follower.known.switch and follower.known.switch.id == id_)
            assert follower.known.on is (wanted is Switch.ON)
    # Had it learnt from polls that ended by themselves, there would be two of them for a flip.
    assert len(asked) < 40


def test_what_was_last_known_outlives_collector_and_router(
    collector: Collector, tmp_path: Path
) -> None:
    """SIGKILLed, the collector leaves the router its state, and a restarted router the file's."""
    file = tmp_path / "s"
    id_ = collector.turn(Switch.ON)
    with following(collector, file) as follower:
        until(lambda: follower.known.on)
        collector.kill()
        until(lambda: "nothing answers" in str(follower.trouble))
        assert follower.known.on
    with following(collector, file) as follower:
        assert (follower.known.on, follower.trouble is None) == (True, False)
        collector.start()
        until(lambda: follower.trouble is None)
        off = collector.turn(Switch.OFF)
        until(lambda: not follower.known.on)
        assert follower.known.switch.id == off > id_


def test_who_never_knew_is_off(collector: Collector, tmp_path: Path) -> None:
    """Neither a collector that is away nor a switch that nobody set is taken for `on`."""
    collector.kill()
    with following(collector, tmp_path / "s") as follower:
        assert follower.known == KnownState(rollout="k4")
        assert not follower.known.on
        collector.start()
        until(lambda: follower.known.told_unix_ns)
        assert follower.known.switch is None
        assert not follower.known.on
        collector.turn(Switch.ON)
        until(lambda: follower.known.on)


def test_a_new_database_counts_though_its_numbers_begin_anew(
    collector: Collector, tmp_path: Path
) -> None:
    """A collector whose log is shorter than what was known is believed, not waited out."""
    for state in (Switch.OFF, Switch.OFF, Switch.ON):
        collector.turn(state)
    with following(collector, tmp_path / "s") as follower:
        until(lambda: follower.known.on)
        collector.kill()
        collector.database = tmp_path / "new.db"
        collector.start()
        until(lambda: follower.known.switch is None)
        first = collector.turn(Switch.OFF)
        until(lambda: follower.known.switch)
        assert (follower.known.switch.id, follower.known.on) == (first, False)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"version": 1}', '{"version": 2, "rollout": "k4"}',
     '{"version": 1, "rollout": "k8"}', '{"version": 1, "rollout": "k4", "switch": "on"}'],
)  # fmt: skip
def test_a_state_file_that_is_unusable_is_unknown(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Torn, foreign or of another rollout: the router starts as baseline, and says so."""
    file = tmp_path / "s"
    file.write_text(text)
    assert known_state.read(file, "k4") == KnownState(rollout="k4")
    assert "the router starts as baseline" in caplog.text


def test_the_state_file_is_replaced_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The written state is read again; a missing folder is a warning, not an error."""
    file = tmp_path / "s"
    known = KnownState(rollout="k4", told_unix_ns=7)
    for _ in range(2):
        known_state.write(file, known)
    assert known_state.read(file, "k4") == known
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    assert json.loads(file.read_text())["version"] == 1
    known_state.write(tmp_path / "missing" / "s", known)
    assert "cannot be written" in caplog.text


def test_a_step_that_somebody_takes_is_known(collector: Collector, tmp_path: Path) -> None:
    """The ramp's newest step is learnt, and kept for a restart without the collector."""
    with following(collector, tmp_path / "s", RampSection()) as follower:
        assert follower.known.ramp is None
        with collector.client() as client:
            client.take_step("k4", RampChange(percent=5, reason="r"))
        until(lambda: follower.known.ramp)
        assert follower.known.ramp.percent == 5
    collector.kill()
    kept = known_state.read(tmp_path / "s", "k4").ramp
    assert kept.percent == 5


@pytest.mark.slow
def test_an_automatic_ramp_begins_waits_and_goes_on(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the switch on it takes the first step, waits out a fail, and follows a newer pass.

    A pass that does not come out the same again moves nothing.
    """
    doubts: list[str | None] = ["its pairs are others"]
    monkeypatch.setattr("engine_adapter.router.switch_follower._PROMOTE_EVERY_S", 0.0)
    section = RampSection(steps=(1, 5), automatic=True)
    follower_of = following(collector, tmp_path / "s", section, lambda _: doubts[0])
    with follower_of as follower, collector.client() as client:
        client.register_policy("k4", registration())
        client.set_switch("k4", Switch.OFF, reason="r")
        until(lambda: follower.known.switch)
        assert client.ramp("k4") == ()
        client.set_switch("k4", Switch.ON, reason="r")
        until(lambda: client.ramp("k4"))
        after = client.ramp("k4")[0].arrived_up_to
        send_pairs(client, "k4")
        client.post_verdict(resting_on(client, made_verdict(Outcome.FAIL), younger_than=after))
        told = follower.known.told_unix_ns
        until(lambda: (follower.known.told_unix_ns or 0) > (told or 0))
        assert len(client.ramp("k4")) == 1
        made = resting_on(client, made_verdict(Outcome.PASS), younger_than=after)
        passed = client.post_verdict(made)
        until(lambda: "its pairs are others" in follower._refused)
        assert len(client.ramp("k4")) == 1
        doubts[0] = None
        until(lambda: len(client.ramp("k4")) == 2)
        newest = client.ramp("k4")[0]
        assert (newest.percent, newest.verdict) == (5, passed.id)
        assert newest.reason == "pass under default: pass of k4"
        until(lambda: follower.known.ramp and follower.known.ramp.percent == 5)


def test_a_ramp_that_may_not_go_on_by_itself_says_so_once(
    collector: Collector,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A key without `admin` keeps the switch followed; the refusal is logged one time."""
    monkeypatch.setattr("engine_adapter.router.switch_follower._PROMOTE_EVERY_S", 0.0)
    refused: list[int] = []

    class Reader(Client):
        def take_step(self, *_: Any) -> Any:
            refused.append(1)
            raise ClientError("the key lacks the scope admin", status=403)

    collector.turn(Switch.ON)
    section = RampSection(automatic=True)
    with following(collector, tmp_path / "s", section, client=Reader) as follower:
        until(lambda: len(refused) >= 2)
        collector.turn(Switch.OFF)
        until(lambda: not follower.known.on)
    assert caplog.text.count("the ramp cannot go on by itself") == 1
