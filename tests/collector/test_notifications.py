"""Notifications: decisions reach webhooks despite failures of these and of the collector."""

import hashlib
import hmac
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from made_verdicts import made_verdict, resting_on, send_pairs
from sqlalchemy import make_url
from sqlite_database import locked
from typer.testing import CliRunner
from waiting import until
from webhook_receiver import (
    Receiver,
    accept,
    answer,
    close_half_way,
    endless,
    free_port,
    never,
    receiving,
)

from collector.cli.notify import app
from collector.client import Client
from collector.contract import AcceptanceWatch, Outcome, Switch, Watch, WatchUpdate
from collector.errors import SettingsError
from collector.notify import targets
from collector.notify.signature import signature

SECRET = "a secret of ours"
Serve = Callable[..., Any]


@pytest.fixture
def file_of(tmp_path: Path) -> Callable[..., Path]:
    """Write a file of targets, each with its URL."""

    def write(**urls: str) -> Path:
        file = tmp_path / "notify.json"  # which YAML reads
        given = [
            {"name": name, "url": url, "secret_env": "HOOK_SECRET"} for name, url in urls.items()
        ]
        file.write_text(json.dumps({"targets": given}))
        return file

    return write


def environment(file: Path) -> dict[str, str]:
    return {"DRAFTGATE_NOTIFY": str(file), "HOOK_SECRET": SECRET}


def turn(url: str, *states: Switch, rollout: str = "k4") -> None:
    with Client(url) as client:
        for number, state in enumerate(states):
            client.set_switch(rollout, state, reason=f"turn {number}")


def reasons(receiver: Receiver) -> list[str]:
    return [one.document["summary"] for one in receiver.received]


def test_what_changes_is_sent_once_and_signed(
    serve: Serve, any_database_url: str, file_of: Callable[..., Path]
) -> None:
    """Verdicts, watches and switches; what stays as it was is not news."""

    def judge(outcome: Outcome, words: str, *, watch: bool = False) -> None:
        versions = {"watch": "1"} if watch else {}
        made = made_verdict(outcome, rollout="k4", versions=versions)
        client.post_verdict(resting_on(client, replace(made, summary=words)))

    watch = Watch(rollout="k4", policy_name="default", policy_hash="0" * 64)
    with receiving() as receiver:
        server = serve(any_database_url, env=environment(file_of(hook=receiver.url)))
        with Client(server.url) as client:
            send_pairs(client, "k4")
            judge(Outcome.PASS, "first")
            judge(Outcome.PASS, "again")
            judge(Outcome.INCONCLUSIVE, "of a watch", watch=True)
            judge(Outcome.FAIL, "harm")
            client.update_watch(WatchUpdate(continues=0, watch=watch))
            decided = replace(watch, outcome=Outcome.FAIL, summary="watched")
            client.update_watch(WatchUpdate(continues=1, watch=decided))
            client.update_watch(WatchUpdate(continues=2, watch=decided))
            fell = AcceptanceWatch(cohort="chat", number=1, drifted=True, message="less")
            drifted = replace(decided, acceptance=(fell,))
            client.update_watch(WatchUpdate(continues=3, watch=drifted))
            client.update_watch(WatchUpdate(continues=4, watch=drifted))
            client.update_watch(WatchUpdate(continues=5, watch=replace(decided, epoch=1)))
        turn(server.url, Switch.ON, Switch.ON, Switch.OFF)
        until(lambda: len(receiver.received) >= 7)
        found = [one.document for one in receiver.received]
        assert [(one["type"], one["before"], one["after"], one["summary"]) for one in found] == [
            ("verdict.changed", None, "pass", "first"),
            ("verdict.changed", "pass", "fail", "harm"),
            ("watch.decided", "inconclusive", "fail", "watched"),
            ("acceptance.drifted", None, "fell", "less"),
            ("acceptance.drifted", "fell", "reset", "acceptance is watched anew"),
            ("switch.turned", None, "on", "turn 0"),
            ("switch.turned", "on", "off", "turn 2"),
        ]
        assert {one["rollout"] for one in found} == {"k4"}
        assert [one["id"] for one in found] == receiver.ids()
        assert [one["cohort"] for one in found] == [None] * 3 + ["chat"] * 2 + [None] * 2
        assert len(set(receiver.ids())) == 7
        for one in receiver.received:
            time_s, _, v1 = one.headers["Draftgate-Signature"].partition(",v1=")
            signed = time_s.removeprefix("t=").encode() + b"." + one.body
            assert v1 == hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        assert server.stop() == 0


@pytest.mark.slow
def test_a_receiver_that_is_down_or_broken_loses_nothing(
    serve: Serve, database_url: str, file_of: Callable[..., Path]
) -> None:
    """Nobody listens, then it ends half-way, then it answers 500 and 302; then it has them all."""
    port = free_port()
    server = serve(database_url, env=environment(file_of(hook=f"http://127.0.0.1:{port}/hook")))
    turn(server.url, Switch.ON, Switch.OFF)
    faults = [close_half_way, answer(500), answer(302)]
    with receiving(port) as receiver:
        receiver.behaviour = lambda handler, n: [*faults, *[endless] * 9][n](handler, n)
        until(lambda: len(receiver.received) >= 5)
        first, second = dict.fromkeys(receiver.ids())
        assert receiver.ids() == [first] * 4 + [second]
        assert reasons(receiver) == ["turn 0"] * 4 + ["turn 1"]
        counted = 'draftgate_notification_attempts_total{outcome="received",target="hook"} 2.0'
        until(lambda: counted in httpx.get(f"{server.url}/metrics").text)


def test_a_receiver_that_never_answers_slows_nobody(
    serve: Serve, database_url: str, file_of: Callable[..., Path]
) -> None:
    """Another target has everything meanwhile, senders are answered, and the first has it later."""
    gone = threading.Event()
    with receiving() as slow, receiving() as quick:
        slow.behaviour = never(gone)
        file = file_of(slow=slow.url, quick=quick.url)
        server = serve(database_url, env=environment(file))
        turn(server.url, Switch.ON, Switch.OFF, Switch.ON)
        until(lambda: len(quick.received) == 3 and len(slow.received) == 1)
        slow.behaviour = accept
        gone.set()
        until(lambda: len(slow.received) == 4)
        assert reasons(slow) == ["turn 0", "turn 0", "turn 1", "turn 2"]
        assert reasons(quick) == ["turn 0", "turn 1", "turn 2"]


@pytest.mark.slow
def test_a_collector_killed_before_and_while_it_sends(
    serve: Serve, database_url: str, file_of: Callable[..., Path]
) -> None:
    """What was committed is sent by the next one; what was being sent, a second time."""
    port = free_port()
    env = environment(file_of(hook=f"http://127.0.0.1:{port}/hook"))
    server = serve(database_url, env=env)
    turn(server.url, Switch.ON)
    server.kill()
    gone = threading.Event()
    with receiving(port) as receiver:
        receiver.behaviour = never(gone)
        server = serve(database_url, env=env)
        until(lambda: len(receiver.received) == 1)
        server.kill()
        gone.set()
        receiver.behaviour = accept
        server = serve(database_url, env=env)
        turn(server.url, Switch.OFF, rollout="k8")
        until(lambda: len(receiver.received) == 3)
        assert [one.document["rollout"] for one in receiver.received] == ["k4", "k4", "k8"]
        assert receiver.ids()[0] == receiver.ids()[1]


def test_of_several_collectors_one_sends(
    serve: Serve, new_database_url: Callable[[str], str], file_of: Callable[..., Path]
) -> None:
    """In order, each once, while all are well; neither URL nor secret is stored."""
    database_url = new_database_url("postgresql")
    states = [Switch.ON, Switch.OFF] * 5
    with receiving() as receiver:
        env = environment(file_of(hook=receiver.url))
        servers = [serve(database_url, env=env) for _ in range(2)]
        for server in servers:
            turn(server.url, *states, rollout=server.url)
        until(lambda: len(receiver.received) >= 20)
        for server in servers:
            assert server.stop() == 0
        assert reasons(receiver) == [f"turn {number}" for number in range(10)] * 2
        assert len(set(receiver.ids())) == 20


def test_a_new_target_hears_of_nothing_old(
    serve: Serve, database_url: str, file_of: Callable[..., Path]
) -> None:
    """A known target goes on where it was; the database holds no secret."""
    turned = serve(database_url)
    turn(turned.url, Switch.ON)
    assert turned.stop() == 0
    with receiving() as receiver:
        server = serve(database_url, env=environment(file_of(hook=receiver.url)))
        turn(server.url, Switch.OFF, Switch.ON)
        until(lambda: len(receiver.received) == 2)
        assert server.stop() == 0
        assert reasons(receiver) == ["turn 0", "turn 1"]
    held = b"".join(
        one.read_bytes()
        for one in Path(str(make_url(database_url).database)).parent.glob("draftgate.db*")
    )
    assert b"turn 1" in held
    assert SECRET.encode() not in held
    assert b"/hook" not in held


def test_without_targets_a_start_waits_for_nobody(database_url: str) -> None:
    """A database that somebody else writes to can be opened and read."""
    Client.local(database_url).close()
    with locked(database_url), Client.local(database_url) as client:
        assert client.rollouts() == ()


def test_forms_are_those_of_their_receivers(tmp_path: Path) -> None:
    """The test command sends one of each; markup in a message is escaped."""
    with receiving() as receiver:
        file = tmp_path / "notify.yaml"
        forms = ("json", "slack", "teams", "alertmanager")
        file.write_text(
            "targets:\n"
            + "".join(f"- {{name: {f}, url: '{receiver.url}/{f}', form: {f}}}\n" for f in forms)
        )
        done = CliRunner().invoke(app, ["test", "--file", str(file)])
        assert done.exit_code == 0
        assert done.output.splitlines() == [f"{f} ({f}, not signed) accepted it" for f in forms]
        found = {one.path.rpartition("/")[2]: one.document for one in receiver.received}
        assert found["json"]["type"] == "test"
        assert found["slack"]["text"].startswith("test: test sent\nA test of draftgate notify")
        (card,) = found["teams"]["attachments"]
        assert card["content"]["body"][0]["text"] == "test: test sent"
        (alert,) = found["alertmanager"]
        assert alert["labels"] == {
            "alertname": "DraftgateTest",
            "rollout": "test",
            "severity": "none",
        }
        assert alert["startsAt"] < alert["endsAt"]
        assert "Draftgate-Signature" not in receiver.received[0].headers
        receiver.behaviour = answer(403)
        done = CliRunner().invoke(app, ["test", "slack", "--file", str(file)])
        assert (done.exit_code, done.output) == (
            1,
            "slack (slack, not signed) did not accept it: it answered 403\n",
        )
        assert CliRunner().invoke(app, ["test", "other", "--file", str(file)]).exit_code == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "wanted one key, `targets:`"),
        ("targets: []", "wanted one key, `targets:`"),
        ("targets: [{url: 'http://h'}]", r"targets\[0\]: wanted a `name:`"),
        ("targets: [{name: a}]", r"targets\[0\]: wanted `url:` or"),
        ("targets: [{name: a, url: 'ftp://hidden'}]", r"targets\[0\].url: wanted a URL"),
        ("targets: [{name: a, url_env: NONE}]", "the environment has no NONE"),
        ("targets: [{name: a, url: 'http://h', secret_env: NONE}]", "has no NONE"),
        ("targets: [{name: a, url: 'http://h', secret_file: /none}]", "/none: cannot be read"),
        ("targets: [{name: a, url: 'http://h', form: pager}]", r"form: 'pager': wanted one of"),
        ("targets: [{name: a, url: 'http://h', events: [all]}]", "events: wanted a list of"),
        ("targets: [{name: a, url: 'http://h', events: [{}]}]", "events: wanted a list of"),
        ("targets: [{name: a, uri: 'http://h'}]", r"targets\[0\].uri: unknown key"),
        ("targets: [{name: a, url: 'http://h'}, {name: a, url: 'http://i'}]", "two targets are"),
    ],
)
def test_an_unusable_file_names_the_key(tmp_path: Path, text: str, words: str) -> None:
    """And never the URL, which may be a secret."""
    file = tmp_path / "notify.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=words) as raised:
        targets.read(file, {})
    assert "hidden" not in str(raised.value)


def test_the_documented_signature() -> None:
    """The example by which a receiver in another language is written."""
    assert signature("secret", b'{"a":1}', 1700000000) == (
        "t=1700000000,v1=" + hmac.new(b"secret", b'1700000000.{"a":1}', hashlib.sha256).hexdigest()
    )
