"""Boards and alerts on rollouts name metrics that a collector exports."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from collector.client import Client
from collector.client.asgi_transport import InProcessTransport
from collector.contract import (
    AcceptanceWatch,
    Arm,
    EProcess,
    Generation,
    Outcome,
    RampChange,
    Speculation,
    Switch,
    Watch,
    WatchUpdate,
    encode,
)
from collector.serving.app import create_app
from collector.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from dashboard_seed.verdicts import cost, finding
from made_verdicts import made_verdict, resting_on, send_pairs
from otlp_bodies import export_request

HERE = Path(__file__).parent
DEPLOY = HERE.parents[1] / "deploy"
SCRAPER = {"job", "instance"}
"""Labels that Prometheus adds."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Return the names of the metrics that a collector tells of a rollout, with their labels."""
    database = f"sqlite:///{tmp_path_factory.mktemp('metrics') / 'draftgate.db'}"
    with Client.local(database) as client:
        begin(client)
    app = create_app(Settings(database_url=database))
    transport = InProcessTransport(app, app.router.lifespan_context(app))
    with httpx.Client(base_url="http://collector", transport=transport) as http:
        families = list(text_string_to_metric_families(http.get("/metrics").text))
    found = {s.name: set(s.labels) for one in families for s in one.samples}
    return {name: labels | SCRAPER for name, labels in found.items()}


def begin(client: Client) -> None:
    """Store a rollout that has all there is to tell of one."""
    send_pairs(client, "k4")
    now = time.time_ns()
    speculation = Speculation(source="request", steps=5, draft_tokens=10, accepted_tokens=6)
    drafted = Generation(
        trace_id="a" * 32,
        span_id="b" * 16,
        start_unix_ns=now,
        end_unix_ns=now + 1,
        rollout="k4",
        arm=Arm.CANDIDATE,
        output_tokens=11,
        speculation=speculation,
    )
    client.post_traces(export_request([encode(drafted)]).SerializeToString())
    limits = {"estimate": 1.3, "lower": 1.2, "upper": 1.4}
    cells = (finding("chat", "ttft", "p95_ratio", outcome=Outcome.FAIL, **limits),)
    made = made_verdict(Outcome.FAIL, rollout="k4", findings=cells, costs=(cost(None),))
    client.post_verdict(resting_on(client, made))
    fell = AcceptanceWatch(cohort="chat", number=1, fall=EProcess(limit=0.1, log_wealth=()))
    watch = Watch(rollout="k4", policy_name="p", policy_hash="0" * 64, acceptance=(fell,))
    client.update_watch(WatchUpdate(continues=0, watch=watch))
    client.set_switch("k4", Switch.OFF, reason="harm")
    client.take_step("k4", RampChange(percent=5, reason="first", continues=0))


def drawn() -> Iterator[tuple[str, str]]:
    """Yield each panel's query with its legend, and each variable's query."""
    board = json.loads((DEPLOY / "grafana" / "rollouts.json").read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]
    for variable in board["templating"]["list"]:
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
        if found:
            yield found[1], "{{" + found[2] + "}}"


def alerted() -> Iterator[tuple[str, str]]:
    """Yield each rule's query with its words."""
    groups = yaml.safe_load((DEPLOY / "prometheus-rollout-alerts.yaml").read_text())["groups"]
    for rule in groups[0]["rules"]:
        words = rule["annotations"]["summary"].replace("$labels.", "")
        yield rule["expr"], re.sub(r"\{\{ \$value.*?\}\}", "", words)


@pytest.mark.parametrize(("query", "words"), [*drawn(), *alerted()])
def test_a_query_names_metrics_and_labels_that_exist(
    query: str, words: str, told: dict[str, set[str]]
) -> None:
    """Those that select, those that group, and those that the words take."""
    used = re.findall(r"(draftgate_\w+)(?:\{([^}]*)\})?", query)
    assert used
    for name, selectors in used:
        assert name in told
        assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selectors)) <= told[name]
    known = set.intersection(*(told[name] for name, _ in used))
    grouped = {
        label for found in re.findall(r"by \(([^)]*)\)", query) for label in found.split(", ")
    }
    assert grouped <= known
    assert set(re.findall(r"\{\{ ?(\w+) ?\}\}", words)) <= (grouped or known)


def test_alerts_fire_when_they_should() -> None:
    """By promtool, where it is installed: every alert, beside a rollout that none is due of."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run(
        [promtool, "test", "rules", str(HERE / "rollout_alerts.test.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case() -> None:
    """In the file that promtool reads."""
    groups = yaml.safe_load((DEPLOY / "prometheus-rollout-alerts.yaml").read_text())["groups"]
    cases = yaml.safe_load((HERE / "rollout_alerts.test.yaml").read_text())["tests"]
    tried = {case["alertname"] for test in cases for case in test["alert_rule_test"]}
    assert tried == {rule["alert"] for rule in groups[0]["rules"]}
