"""Switches of rollouts: an audit log, and waiting for its next event."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from stored_keys import add_key

from collector.api.switch_watch import SwitchWatch
from collector.api_key import Scope
from collector.client import Client, ClientError
from collector.contract import Switch
from collector.store import Store
from collector.store.release import switches

WAITERS = 60
"""More than the database's connections, and more than the threads that serve requests."""


def test_a_switch_nobody_set_is_unknown(http: httpx.Client) -> None:
    """There is no state and no log, and asking makes none."""
    for _ in range(2):
        answer = http.get("/api/v1/rollouts/k4/switch")
        assert answer.json() == {"rollout": "k4", "state": None, "log": []}


def test_the_newest_event_is_the_state(database_url: str) -> None:
    """Each post is one more event, the same state again too; another rollout's is its own."""
    with Client.local(database_url) as client:
        first = client.set_switch("team/k 4", Switch.ON, reason="verdict passes")
        second = client.set_switch("team/k 4", Switch.OFF, reason="p95 of rag ☃")
        other = client.set_switch("k2", Switch.ON, reason="try")
        assert client.switch("team/k 4") == (second, first)
        assert client.switch("k2") == (other,)
    assert (first.state, first.who, first.reason) == (Switch.ON, "local", "verdict passes")
    assert first.id < second.id < other.id
    with Client.local(database_url) as client:
        assert client.switch("team/k 4") == (second, first)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"state": "on"}, "reason: missing key"),
        ({"state": "on", "reason": " "}, "a switch is set for a reason"),
        ({"state": "maybe", "reason": "r"}, "state: wanted one of on, off"),
        ({"state": "on", "reason": "r", "who": "me"}, "who: unknown key"),
        ({"state": "on", "reason": "x" * 2001}, "reason: wanted at most 2000"),
        ([], "wanted an object"),
    ],
)
def test_an_unusable_change_is_refused(http: httpx.Client, body: Any, words: str) -> None:
    """400 describes the error, and nothing is stored."""
    answer = http.post("/api/v1/rollouts/k4/switch", json=body)
    assert answer.status_code == 400
    assert words in answer.json()["detail"]
    assert http.get("/api/v1/rollouts/k4/switch").json()["log"] == []


def test_setting_needs_the_scope_admin(serve: Callable[..., Any], database_url: str) -> None:
    """A key that may only read is refused; the log names the key that set the switch."""
    with Store.open(database_url) as store:
        reader = add_key(store, "dashboard", Scope.READ)
        admin = add_key(store, "release team", Scope.ADMIN, Scope.READ)
    server = serve(database_url, env={"DRAFTGATE_REQUIRE_KEYS": "1"})
    with Client(server.url, key=reader) as client, pytest.raises(ClientError, match="scope admin"):
        client.set_switch("k4", Switch.ON, reason="r")
    with Client(server.url, key=admin) as client:
        assert client.set_switch("k4", Switch.ON, reason="r").who == "release team"
    with Client(server.url, key=reader) as client:
        assert [event.who for event in client.switch("k4")] == ["release team"]


def test_many_wait_and_others_are_served(serve: Callable[..., Any], database_url: str) -> None:
    """More wait than there are threads and connections; one event wakes those it is for."""
    server = serve(database_url)
    with ThreadPoolExecutor(WAITERS) as pool, Client(server.url) as client:
        known = client.set_switch("k4", Switch.ON, reason="r").id

        def wait(n: int) -> Any:
            with Client(server.url) as waiting:
                rollout = "k4" if n % 2 else "k2"
                return rollout, waiting.switch(rollout, wait_s=20 if n % 2 else 2, since=known)

        waiters = [pool.submit(wait, n) for n in range(WAITERS)]
        time.sleep(1)
        assert client.health()
        assert client.rollouts() == ()
        changed = client.set_switch("k4", Switch.OFF, reason="slow")
        for waiter in waiters:
            rollout, log = waiter.result()
            assert [e.id for e in log] == ([changed.id, known] if rollout == "k4" else [])


def test_a_change_by_another_process_is_noticed(
    serve: Callable[..., Any], any_database_url: str
) -> None:
    """Two collectors on one database: a waiting client of one sees the other's changes."""
    one, two = serve(any_database_url), serve(any_database_url)
    with ThreadPoolExecutor(1) as pool, Client(one.url) as here, Client(two.url) as there:
        waiter = pool.submit(here.switch, "k4", wait_s=30)
        time.sleep(0.5)
        event = there.set_switch("k4", Switch.OFF, reason="slow")
        assert waiter.result() == (event,)


def test_the_end_of_the_collector_lets_waiters_go(
    serve: Callable[..., Any], database_url: str
) -> None:
    """When stopped, it answers waiting clients with the known state at once."""
    server = serve(database_url)
    with ThreadPoolExecutor(1) as pool, Client(server.url) as client:
        assert client.health()
        waiter = pool.submit(client.switch, "k4", wait_s=60)
        time.sleep(2)  # nothing tells that a request waits
        assert server.stop() == 0
        assert waiter.result(timeout=50) == ()


def test_nothing_is_asked_where_nobody_waits(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One question at a time serves all who wait, and the last one to go ends the questions."""
    asked = []

    def changed_since(_connection: Any, after: int) -> dict[str, int]:
        asked.append(after)
        return {"k4": 7} if len(asked) == 3 else {}

    monkeypatch.setattr(switches, "changed_since", changed_since)

    async def wait() -> None:
        watch = SwitchWatch(store, poll_every_s=0.01)
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(watch.wait_for("k4", 6, 9))
        await asyncio.sleep(0.1)
        assert len(asked) <= 4
        before = len(asked)
        await asyncio.sleep(0.1)
        assert len(asked) == before
        await watch.end()

    with Store.open(database_url) as store:
        asyncio.run(wait())
