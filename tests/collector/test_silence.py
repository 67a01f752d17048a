"""A served rollout that falls silent is told of once, whatever happens to clocks and collectors."""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from made_generations import generation_of
from made_verdicts import send_pairs
from otlp_bodies import received
from sqlalchemy import make_url, select
from waiting import until
from webhook_receiver import receiving

from collector.client import Client
from collector.contract import Arm, RampChange, Switch, SwitchChange, encode
from collector.ingest.preparation import prepare
from collector.serving.silence import Silence
from collector.settings import Settings
from collector.store import Batch, Store
from collector.store.release import ramps, switches
from collector.store.tables import notification

LIMIT_S = 40.0
LOOK_S = 10.0


class Rollout:
    """A store, a clock and the collector that looks."""

    def __init__(self, store: Store) -> None:
        self.store, self.now_s, self.number = store, 0.0, 1
        self.restart()

    def restart(self) -> None:
        """Let another collector, which remembers nothing, look from now on."""
        self.silence = Silence(self.store, LIMIT_S, clock=lambda: self.now_s)
        self.silence.look(lambda: True)

    def turn(self, state: Switch) -> None:
        with self.store.transaction() as connection:
            change = SwitchChange(state=state, reason="r")
            switches.add(connection, "k4", change, who="w", unix_ns=1)

    def send(self, arm: Arm) -> None:
        self.number += 1
        made = generation_of(self.number, arm=arm, prompt_id=f"p{self.number}")
        self.store.write(Batch(spans=prepare(received([encode(made)]))))

    def wait(self, seconds: float, arms: Iterable[Arm] = (), *, step_s: float = LOOK_S) -> None:
        """Let time pass, with a look at each step; before each the arms send."""
        for _ in range(int(seconds / step_s)):
            for arm in arms:
                self.send(arm)
            self.now_s += step_s
            self.silence.look(lambda: True)

    def told(self) -> list[str]:
        """Return the states that were told."""
        of = notification.c.type == "evidence.stopped"
        with self.store.read() as connection:
            found = connection.scalars(select(notification.c.document).where(of)).all()
        return [json.loads(one)["after"] for one in found]


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("clickhouse", marks=pytest.mark.slow)])
def rollout(
    request: pytest.FixtureRequest, new_settings: Callable[[str], Settings]
) -> Iterator[Rollout]:
    """Give a rollout whose switch is on, and that a collector already looks at."""
    of = new_settings(request.param)
    opened = Store.open(of.database_url, analytics_url=of.analytics_url)
    with contextlib.closing(opened) as store:
        made = Rollout(store)
        made.turn(Switch.ON)
        yield made


def test_a_silence_is_told_once_and_its_end_too(rollout: Rollout) -> None:
    """The baseline alone is no evidence; the next silence is told again."""
    rollout.wait(60, Arm)
    rollout.wait(LIMIT_S - LOOK_S, [Arm.BASELINE])
    assert rollout.told() == []
    rollout.wait(10 * LIMIT_S, [Arm.BASELINE])
    assert rollout.told() == ["stopped"]
    rollout.wait(60, Arm)
    assert rollout.told() == ["stopped", "flowing"]
    rollout.wait(2 * LIMIT_S)
    assert rollout.told() == ["stopped", "flowing", "stopped"]


def test_a_restart_tells_nothing_twice(rollout: Rollout) -> None:
    """A new collector counts from 0 before it tells, and knows what was told."""
    rollout.wait(20, Arm)
    rollout.wait(LIMIT_S - LOOK_S)
    rollout.restart()
    rollout.wait(LIMIT_S - LOOK_S)
    assert rollout.told() == []
    rollout.wait(LOOK_S)
    assert rollout.told() == ["stopped"]
    rollout.restart()
    rollout.wait(10 * LIMIT_S)
    assert rollout.told() == ["stopped"]
    rollout.wait(LOOK_S, Arm)
    assert rollout.told() == ["stopped", "flowing"]


def test_a_jump_of_the_clock_is_no_silence(rollout: Rollout) -> None:
    """Nor is a process that was suspended for a day: a look counts two intervals at most."""
    rollout.wait(20, Arm)
    rollout.wait(86_400, step_s=86_400)
    assert rollout.told() == []
    rollout.wait(LOOK_S, Arm)
    rollout.wait(LIMIT_S - LOOK_S)
    assert rollout.told() == []


def test_rollouts_that_are_not_served_are_left_alone(rollout: Rollout) -> None:
    """Old ones, those switched off, and those of a ramp at 0 %; a silence ends with the serving."""
    rollout.wait(2 * LIMIT_S)  # nothing was ever heard of it
    assert rollout.told() == []
    rollout.wait(20, Arm)
    rollout.turn(Switch.OFF)
    rollout.wait(2 * LIMIT_S)
    assert rollout.told() == []
    rollout.turn(Switch.ON)
    rollout.wait(20, Arm)
    rollout.wait(2 * LIMIT_S)
    with rollout.store.transaction() as connection:
        nothing = RampChange(percent=0, reason="r", continues=0)
        ramps.add(connection, "k4", nothing, who="w", unix_ns=1)
    rollout.wait(2 * LIMIT_S)
    assert rollout.told() == ["stopped", "not served"]


def test_of_two_collectors_one_tells(rollout: Rollout) -> None:
    """Both look; the one without the lease counts nothing."""
    other = Silence(rollout.store, LIMIT_S, clock=lambda: rollout.now_s)
    rollout.wait(20, Arm)
    for _ in range(20):
        rollout.wait(LOOK_S)
        other.look(lambda: False)
    assert rollout.told() == ["stopped"]


@pytest.mark.slow
def test_a_webhook_hears_of_it(
    serve: Callable[..., Any], database_url: str, tmp_path: Path
) -> None:
    """From a running collector, and from the one started after it."""
    sent = iter(range(10_000))
    path = str(make_url(database_url).database)

    def followed() -> bool:
        send_pairs(client, "k4", first=next(sent))
        with contextlib.closing(sqlite3.connect(path)) as database:
            found: tuple[int] = database.execute("SELECT count(*) FROM evidence_flow").fetchone()
        return found == (1,)

    def resumed() -> bool:
        send_pairs(client, "k4", first=next(sent))
        return len(receiver.received) > 1

    with receiving() as receiver:
        file = tmp_path / "notify.yaml"
        hook = f"{{name: hook, url: '{receiver.url}', events: [evidence.stopped]}}"
        file.write_text(f"targets: [{hook}]")
        env = {"DRAFTGATE_NOTIFY": str(file), "DRAFTGATE_SILENCE": "2s"}
        server = serve(database_url, env=env)
        with Client(server.url) as client:
            client.set_switch("k4", Switch.ON, reason="begin")
            until(followed)
        until(lambda: len(receiver.received) == 1)
        assert server.stop() == 0
        server = serve(database_url, env=env)
        with Client(server.url) as client:
            until(resumed)
        found = [one.document for one in receiver.received[:2]]
    assert [(one["before"], one["after"], one["summary"]) for one in found] == [
        ("flowing", "stopped", "no generation of the candidate for 2 s"),
        ("stopped", "flowing", "the candidate's generations come again"),
    ]
