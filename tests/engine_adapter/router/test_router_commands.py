"""`draftgate route`, `switch`, `promote` and `drill`, with real collectors, proxies and traffic."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import scripted_server
import yaml
from otlp_bodies import export_request
from scripted_server import Route, chat
from typer.testing import CliRunner
from waiting import until

from collector.client import Client
from collector.contract import Arm, Generation, Outcome, RampChange, Speculation, Switch, encode
from draftgate import commands
from evals import policy as policies
from evals import source

KEY_SHA = "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683"  # of "key"
BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}


@dataclass
class Site:
    """A collector, two engines, and a router between them."""

    collector: str
    router: str
    baseline: scripted_server.Server
    candidate: scripted_server.Server
    process: "subprocess.Popen[str]"
    http: httpx.Client

    def state(self) -> dict[str, Any]:
        answer = self.http.get(f"{self.router}/router/state")
        found: dict[str, Any] = answer.raise_for_status().json()
        return found


@contextmanager
def process(
    *arguments: str, ready: str, cwd: Path
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Start a command of `draftgate`, and yield it with the address that it says."""
    started = subprocess.Popen(
        [sys.executable, "-m", "draftgate", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        for line in started.stdout:
            if found := re.search(ready, line):
                yield started, found[1]
                break
        else:
            pytest.fail(f"{arguments} ended")
    finally:
        started.kill()
        started.communicate()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Start a site; `routes` are keys of its routes file."""
    with ExitStack() as stack:

        def start(**routes: Any) -> Site:
            collector = stack.enter_context(
                process(
                    *("serve", "--database", f"sqlite:///{tmp_path / 'dg.db'}"),
                    *("--port", "0", "--no-grpc"),
                    ready=r"HTTP at (http://[0-9.:]+)",
                    cwd=tmp_path,
                )
            )[1]
            baseline, candidate = (
                stack.enter_context(scripted_server.running(Route(chat(["a", "b"], gap_s=0.005))))
                for _ in range(2)
            )
            document = {
                "rollout": "k4",
                "mode": "split",
                "share": 50,
                "upstreams": {
                    "baseline": {"url": baseline.url},
                    "candidate": {"url": candidate.url},
                },
                "listen": {"port": 0},
                "client_keys": [{"name": "tests", "sha256": KEY_SHA}],
                "collector": {"url": collector},
            } | routes
            (tmp_path / "routes.yaml").write_text(yaml.safe_dump(document))
            running, router = stack.enter_context(
                process("route", "routes.yaml", ready=r"listening at (.*)/v1;", cwd=tmp_path)
            )
            http = stack.enter_context(httpx.Client(headers={"Authorization": "Bearer key"}))
            return Site(collector, router, baseline, candidate, running, http)

        yield start


@dataclass
class Traffic:
    """Streams that are asked one behind the other by several clients."""

    router: str
    stopped: threading.Event = field(default_factory=threading.Event)
    answered: int = 0
    failed: list[str] = field(default_factory=list)

    def ask(self) -> None:
        with httpx.Client(headers={"Authorization": "Bearer key"}, timeout=30) as http:
            while not self.stopped.is_set():
                begun = False
                try:
                    url = f"{self.router}/v1/chat/completions"
                    with http.stream("POST", url, json=BODY) as answer:
                        begun = True
                        text = answer.read().decode()
                    if not answer.is_success or not text.endswith("data: [DONE]\n\n"):
                        self.failed.append(text)
                except httpx.HTTPError as exc:
                    self.failed.append(f"{'cut' if begun else 'not begun'}: {exc!r}")
                self.answered += 1


@contextmanager
def traffic(router: str, clients: int = 4) -> Iterator[Traffic]:
    made = Traffic(router)
    threads = [threading.Thread(target=made.ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield made
    finally:
        made.stopped.set()
        for thread in threads:
            thread.join()


def run(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Run a command; return its exit code and output."""
    result = CliRunner().invoke(commands.app, arguments, env=env)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


@pytest.mark.slow
def test_flips_under_load(site: Callable[..., Site]) -> None:
    """No request fails; once the router says that it knows of `off`, no candidate is asked.

    Traffic goes on after each flip, so that it would have been.
    """
    started = site()

    def begun(arm: str) -> int:
        found: int = started.state()["arms"][arm]["begun"]
        return found

    with Client(started.collector) as client, traffic(started.router) as asked:
        for _ in range(25):
            on = client.set_switch("k4", Switch.ON, reason="r").id
            before = begun("candidate")
            until(lambda b=before: begun("candidate") > b)
            off = client.set_switch("k4", Switch.OFF, reason="r").id
            assert off > on
            until(lambda o=off: started.state()["control"]["switch"]["id"] == o)
            at_off, at_baseline = begun("candidate"), begun("baseline")
            until(lambda b=at_baseline: begun("baseline") > b + 8)
            assert begun("candidate") == at_off
    assert asked.failed == []
    assert asked.answered > 25 * 8
    assert len(started.candidate.log()) == begun("candidate")


def test_a_drill_over_live_traffic(site: Callable[..., Site]) -> None:
    """The flip is measured, the switch is on again, and both stand in its log."""
    started = site(share=100, mode="mirror")
    drill = ("drill", "k4", "--router", started.router, "--collector", started.collector)
    env = {"DRAFTGATE_ROUTER_KEY": "key"}
    code, said = run(*drill, env=env)
    assert (code, "the switch is not set, so there is nothing to switch off" in said) == (2, True)
    code, said = run(*drill)
    assert (code, "DRAFTGATE_ROUTER_KEY" in said) == (2, True)
    with Client(started.collector) as client:
        client.set_switch("k4", Switch.ON, reason="r")
        until(lambda: started.state()["control"]["candidate_allowed"])
        code, said = run(*drill, "--traffic", "1", env=env)
        assert (code, "no request went to the candidate in 1 s (its share is 100 %)" in said) == (
            2,
            True,
        )
        with traffic(started.router) as asked:
            code, said = run(*drill, "--watch", "1", "--json", env=env)
        assert asked.failed == []
        found = json.loads(said)
        assert (code == 0) is (found["holds"] and found["decides"])
        assert found["restored"]
        assert found["learnt_s"] is not None
        assert found["candidate_before"] > 0
        assert found["baseline_after"] > 0
        # By the engine's own log: as many were begun as the router says. Copies for the mirror are
        # begun after their answers, some of them after the traffic has ended.
        until(
            lambda: started.state()["arms"]["candidate"]["begun"] == len(started.candidate.log()),
            "the engine's log and the router's count agree",
        )
        reasons = [event.reason for event in client.switch("k4")]
    assert reasons[0] == "drill over: as it was before"
    assert reasons[1].startswith(f"drill: {started.router} is watched for 1 s")


def test_a_drill_of_something_else(site: Callable[..., Site]) -> None:
    """Another rollout's router, another server, and nothing at all are told apart."""
    started = site()
    env = {"DRAFTGATE_ROUTER_KEY": "key"}
    for rollout, url, words in (
        ("k8", started.router, "routes 'k4', not 'k8'"),
        ("k4", started.collector, "404"),
        ("k4", "http://127.0.0.1:9", "is `draftgate route` running there?"),
    ):
        given = ("drill", rollout, "--router", url, "--collector", started.collector)
        code, said = run(*given, env=env)
        assert (code, words in said) == (2, True), said


def test_route_registers_its_policy_before_the_first_pair(
    site: Callable[..., Site], tmp_path: Path
) -> None:
    """The one that the routes file names, beside that file, once the collector answers."""
    (tmp_path / "own.yaml").write_text(POLICY)
    started = site(policy="own.yaml")
    with Client(started.collector) as client:
        until(lambda: client.history("k4").registered is not None)
        registered = client.history("k4").registered
    assert registered.policy_hash == policies.load(tmp_path / "own.yaml").policy_hash
    assert registered.before_first_pair


def test_a_stopped_router_lets_streams_finish(site: Callable[..., Site]) -> None:
    """SIGTERM under load ends it with 0, and nobody's stream is cut."""
    started = site()
    with traffic(started.router) as asked:
        until(lambda: asked.answered > 20)
        started.process.send_signal(signal.SIGTERM)
        assert started.process.wait(60) == 0
    # Whoever asks again is not let in, by a new connection or by the one that its answer came by.
    refused = re.compile(r"not begun: (?!ReadTimeout)|.*router_stopping")
    assert [said for said in asked.failed if refused.match(said) is None] == []


def test_a_stopped_router_waits_for_no_body(site: Callable[..., Site]) -> None:
    """A request whose body is still on its way when the router stops is refused, not kept."""
    started = site()
    url = httpx.URL(started.router)
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: r\r\nAuthorization: Bearer key\r\n"
    with socket.create_connection((url.host, url.port), timeout=30) as client:
        client.sendall(f"{head}Content-Length: 100\r\n\r\n".encode())
        until(lambda: started.state()["in_flight"] == 2)  # it, and the one that asks
        started.process.send_signal(signal.SIGTERM)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"router_stopping" in answer
    assert started.process.wait(60) == 0


def test_route_checks_without_serving(tmp_path: Path) -> None:
    """`--check` says what goes where and ends; an unusable file ends with 2 and one line."""
    document = {
        "rollout": "k4",
        "mode": "candidate",
        "upstreams": {"baseline": {"url": "http://b/v1"}, "candidate": {"url": "http://c/v1"}},
    }
    file = tmp_path / "routes.yaml"
    file.write_text(yaml.safe_dump(document))
    code, said = run("route", str(file), "--check", "--collector", "http://other:1")
    assert (code, "mode candidate: the candidate answers all eligible requests" in said) == (
        0,
        True,
    )
    assert "switch and ramp from http://other:1" in said
    file.write_text(yaml.safe_dump(document | {"mode": "candidates"}))
    code, said = run("route", str(file), "--check")
    assert code == 2
    assert said.startswith(f"error: {file}: mode: Input should be 'baseline', 'mirror', 'split'")


def test_a_port_that_is_taken(site: Callable[..., Site], tmp_path: Path) -> None:
    """The address and the remedy are named."""
    started = site()
    taken = started.router.rpartition(":")[2]
    given = ("route", str(tmp_path / "routes.yaml"), "--port", taken)
    code, said = run(*given)
    assert (code, f"listen: 127.0.0.1:{taken} cannot be listened on" in said) == (2, True), said


def test_the_switch_from_the_command_line(tmp_path: Path) -> None:
    """Shown, set, and shown again with its log; setting says why, or is refused."""
    at = ("--database", f"sqlite:///{tmp_path / 'dg.db'}")
    code, said = run("switch", "k4", *at)
    assert (code, said) == (
        0,
        "k4: never set; routers send all requests to the baseline until it is on\n",
    )
    assert run("switch", "k4", "off", *at) == (
        2,
        "error: setting a switch needs --reason, for the audit log\n",
    )
    assert run("switch", "k4", "--reason", "r", *at)[0] == 2
    assert run("switch", "k4", "maybe", "--reason", "r", *at)[0] == 2
    code, said = run("switch", "k4", "on", "--reason", "first", *at)
    assert (code, said.startswith("k4: on  "), said.count("\n")) == (0, True, 1)
    run("switch", "k4", "off", "--reason", "p95 doubled", *at)
    lines = run("switch", "k4", *at)[1].splitlines()
    assert [line.rpartition("  ")[2] for line in lines] == ["local: p95 doubled", "local: first"]
    log = json.loads(run("switch", "k4", "--json", *at)[1])["log"]
    assert [event["state"] for event in log] == ["off", "on"]


def test_promotion_from_the_command_line(tmp_path: Path) -> None:
    """It begins, waits for a newer pass, goes on, and goes back for a reason."""
    url = f"sqlite:///{tmp_path / 'dg.db'}"
    at = ("--database", url)
    assert run("promote", "k4", "--dry-run", *at) == (
        0,
        "k4: would stand at 1 % (before: not begun): begin at 1 %\n",
    )
    assert run("promote", "k4", *at) == (
        0,
        "k4: stands at 1 % (before: not begun): begin at 1 %\n",
    )
    code, said = run("promote", "k4", *at)
    assert (code, "stands at 1 %; 5 % needs a passing verdict under the" in said) == (1, True)
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    assert run("register", "k4", "--policy", str(policy), *at)[0] == 0
    send(url, range(20))
    gate = ("gate", "k4", "--policy", str(policy), "--since-step", *at)
    assert run(*gate)[0] == 3
    code, said = run("promote", "k4", *at)
    assert (code, "the newest is inconclusive: k4 is inconclusive" in said) == (1, True)
    send(url, range(20, 400))
    with Client.local(url) as client:
        verdict = source.judge(client, "k4", policies.load(policy), control=None)
        lied = replace(verdict, outcome=Outcome.PASS, findings=())
        client.post_verdict(lied)
    code, said = run("promote", "k4", *at)
    assert (code, "cannot be relied on: derived again it says: pass" in said) == (1, True)
    assert run(*gate)[0] == 0
    file = tmp_path / "routes.yaml"
    upstreams = {"baseline": {"url": "http://b/v1"}, "candidate": {"url": "http://c/v1"}}
    routes = {"rollout": "k4", "upstreams": upstreams, "ramp": {"steps": [1, 10]}, "mode": "split"}
    file.write_text(yaml.safe_dump(routes))
    code, said = run("promote", "k4", "--routes", str(file), *at)
    assert code == 0
    assert said.startswith("k4: stands at 10 % (before: 1 %): pass under small: k4 passes on 400 ")
    code, said = run("promote", "k4", "--routes", str(file), *at)
    assert (code, "stands at 10 %, its last step" in said) == (1, True)
    assert run("promote", "k4", "--back-to", "0", *at)[0] == 2
    code, said = run("promote", "k4", "--back-to", "20", "--reason", "r", *at)
    assert (code, "20 % is no step back; wanted less, such as 0, 1, 5" in said) == (1, True)
    code, said = run("promote", "k4", "--back-to", "0", "--reason", "rag is slower", *at)
    assert (code, said) == (0, "k4: stands at 0 % (before: 10 %): rag is slower\n")
    code, said = run("promote", "k8", "--routes", str(file), *at)
    assert (code, "rollout: routes 'k4', not 'k8'" in said) == (2, True)
    with Client.local(url) as client:
        assert [step.percent for step in client.ramp("k4")] == [0, 10, 1]


def test_a_promotion_that_somebody_else_made_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector refuses the second, and the command says why."""
    url = f"sqlite:///{tmp_path / 'dg.db'}"
    take = Client.take_step

    def second(client: Client, rollout: str, change: RampChange) -> Any:
        take(client, rollout, change)
        return take(client, rollout, change)

    monkeypatch.setattr(Client, "take_step", second)
    code, said = run("promote", "k4", "--database", url)
    assert (code, "somebody else took one" in said) == (2, True)


POLICY = """
version: 1
name: small
prove:
  - {metric: e2e, stat: geomean_ratio, max: 1.1, scope: pooled}
"""


def send(url: str, numbers: Iterable[int]) -> None:
    """Store pairs whose candidate is about as fast."""
    spans = []
    for number in numbers:
        for side, arm in enumerate(Arm):
            start_ns = 10**18 + number * 10**10
            spans.append(
                encode(
                    Generation(
                        trace_id=f"{number + 1:032x}",
                        span_id=f"{side + 1:016x}",
                        start_unix_ns=start_ns,
                        end_unix_ns=start_ns + 10**9 + (number * 37 % 101 + side) * 10**6,
                        ttft_s=0.1,
                        output_tokens=20,
                        input_tokens=10,
                        request_model="m",
                        rollout="k4",
                        arm=arm,
                        cohort="chat",
                        prompt_id=f"p{number:03}",
                        repeat=0,
                        speculation=SPECULATED if arm is Arm.CANDIDATE else None,
                    )
                )
            )
    with Client.local(url) as client:
        client.post_traces(export_request(spans).SerializeToString())


SPECULATED = Speculation(
    method="draft_model", num_speculative_tokens=4, steps=5, draft_tokens=20, accepted_tokens=15
)
