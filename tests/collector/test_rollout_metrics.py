"""The state of rollouts on `/metrics`: known values alone, bounded in number and in cost."""

import re
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from collector_in_process import http_of
from dashboard_seed.verdicts import finding
from made_generations import generation_of
from made_verdicts import made_verdict, registration, resting_on, send_pairs
from otlp_bodies import body_of
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import event

from collector.api.rollout_metrics import MOST_COHORTS, MOST_ROLLOUTS
from collector.client import Client
from collector.client.asgi_transport import InProcessTransport
from collector.contract import (
    AcceptanceWatch,
    Arm,
    CostComparison,
    EProcess,
    Finding,
    Outcome,
    RampChange,
    Reason,
    Role,
    Switch,
    Verdict,
    Watch,
    WatchUpdate,
    encode,
)
from collector.serving.app import create_app
from collector.settings import Settings

LABELS = ("rollout", "arm", "cohort", "metric", "stat", "role", "outcome", "currency")
Metrics = dict[str, dict[tuple[str, ...], float]]


def scraped(database_url: str) -> Metrics:
    """Return the samples of a collector that starts now, by name and the labels' values."""
    app = create_app(Settings(database_url=database_url))
    transport = InProcessTransport(app, app.router.lifespan_context(app))
    with httpx.Client(base_url="http://collector", transport=transport) as http:
        return samples(http)


def samples(http: httpx.Client) -> Metrics:
    answer = http.get("/metrics")
    assert answer.status_code == 200
    found: Metrics = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            if sample.name.startswith("draftgate_rollout"):
                name = re.sub("draftgate_(rollout_)?", "", sample.name)
                of = found.setdefault(name, {})
                labels = tuple(sample.labels[name] for name in LABELS if name in sample.labels)
                assert labels not in of
                of[labels] = sample.value
    return found


def judge(client: Client, rollout: str, *cells: Finding, **changes: Any) -> Verdict:
    send_pairs(client, rollout)
    made = made_verdict(rollout=rollout, findings=cells, **{"outcome": Outcome.PASS} | changes)
    return client.post_verdict(resting_on(client, made)).verdict


def test_what_nobody_decided_is_absent(any_database_url: str) -> None:
    """A collector without a rollout, and one whose rollout sent spans alone, tell of none."""
    assert scraped(any_database_url) == {"rollouts_left_out": {(): 0}}
    with Client.local(any_database_url) as client:
        send_pairs(client, "k4")
    assert scraped(any_database_url) == {"rollouts_left_out": {(): 0}}


def test_the_newest_verdict_its_cells_switch_and_ramp_are_told(any_database_url: str) -> None:
    """As they are stored; a limit that does not exist has no sample."""
    name = 'team/k "4"'
    cells = (
        finding(None, "tpot", "geomean_ratio", margin=1.0, estimate=0.58, lower=0.54, upper=0.62),
        finding("chat", "ttft", "p95_ratio", outcome=Outcome.INCONCLUSIVE, reason=Reason.TOO_FEW),
    )
    with Client.local(any_database_url) as client:
        judge(client, name, outcome=Outcome.PASS)
        client.register_policy("only-registered", registration())
        client.set_switch(name, Switch.ON, reason="begin")
        client.set_switch(name, Switch.OFF, reason="end")
        client.take_step(name, RampChange(percent=5, reason="first", continues=0))
        judge(client, name, *cells, outcome=Outcome.FAIL)
        found = scraped(any_database_url)
    assert found["verdict"] == {
        (name, "pass"): 0,
        (name, "fail"): 1,
        (name, "inconclusive"): 0,
    }
    assert 0 <= found.pop("verdict_age_seconds")[name,] < 600
    assert found["verdict_pairs"] == {(name,): 1}
    pool = (name, "", "tpot", "geomean_ratio", Role.PROVE.value)
    chat = (name, "chat", "ttft", "p95_ratio", Role.GUARD.value)
    assert found["cell"] == {
        (*pool, "pass"): 1,
        (*pool, "fail"): 0,
        (*pool, "inconclusive"): 0,
        (*chat, "pass"): 0,
        (*chat, "fail"): 0,
        (*chat, "inconclusive"): 1,
    }
    assert found["cell_estimate"] == {pool: 0.58}
    assert found["cell_lower"] == {pool: 0.54}
    assert found["cell_upper"] == {pool: 0.62}
    assert found["cell_margin"] == {pool: 1.0, chat: 1.1}
    assert found["switch_on"] == {(name,): 0}
    assert found["ramp_percent"] == {(name,): 5}


def cost(cohort: str | None, n: int = 100, **changes: Any) -> CostComparison:
    """Return costs of which nothing is known, with changes."""
    names = ("baseline", "candidate", "difference", "lower", "upper", "in_flight")
    values = dict.fromkeys((*names, "rejected_drafts")) | {
        "rejected_drafts_lower": None,
        "rejected_drafts_upper": None,
    }
    fixed = {"cohort": cohort, "currency": "USD", "n": n, "left_out": 0, "confidence": 0.95}
    return CostComparison(**(values | fixed | changes))


def test_costs_are_told_as_far_as_they_are_known(any_database_url: str) -> None:
    """The pool's and those of the cohorts with the most pairs, in the currency of the prices."""
    pool = cost(None, baseline=2.0, candidate=1.5, difference=-0.5, upper=-0.4)
    cohorts = [cost(f"c{n:02}", n=n, rejected_drafts=0.25) for n in range(MOST_COHORTS + 2)]
    with Client.local(any_database_url) as client:
        judge(client, "k4", costs=(pool, *cohorts))
        found = scraped(any_database_url)
    assert found["cost_per_million_output_tokens"] == {
        ("k4", "baseline", "", "USD"): 2.0,
        ("k4", "candidate", "", "USD"): 1.5,
    }
    assert found["cost_difference"] == {("k4", "", "USD"): -0.5}
    assert found["cost_upper"] == {("k4", "", "USD"): -0.4}
    assert "cost_lower" not in found
    named = {cohort for _, cohort, _ in found["cost_rejected_drafts"]}
    assert named == {f"c{n:02}" for n in range(2, MOST_COHORTS + 2)}


def test_drifts_are_told_of_cohorts_that_are_compared(any_database_url: str) -> None:
    """1 for a cohort that fell, 0 for one that did not; none before it is compared."""
    fall = EProcess(limit=0.1, log_wealth=())
    compared = [
        AcceptanceWatch(cohort=f"c{n:02}", number=n, fall=fall, drifted=n == MOST_COHORTS + 2)
        for n in range(1, MOST_COHORTS + 3)
    ]
    alarms = (AcceptanceWatch(cohort="early", number=99), *compared)
    watch = Watch(rollout="k4", policy_name="p", policy_hash="0" * 64, acceptance=alarms)
    with Client.local(any_database_url) as client:
        client.register_policy("k4", registration())
        client.update_watch(WatchUpdate(continues=0, watch=watch))
        found = scraped(any_database_url)["acceptance_drifted"]
    assert len(found) == MOST_COHORTS
    assert found["k4", f"c{MOST_COHORTS + 2:02}"] == 1
    assert {found["k4", f"c{n:02}"] for n in range(1, MOST_COHORTS)} == {0}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "clickhouse"])
def test_acceptance_is_of_the_last_hour(kind: str, new_settings: Callable[[str], Settings]) -> None:
    """Counts of cohorts are summed by arm; older generations, and absent counts, add nothing."""
    now = time.time_ns()
    times = {"start_unix_ns": now - 60 * 10**9, "end_unix_ns": now - 58 * 10**9}
    spans = [
        encode(generation_of(1, cohort="chat", **times)),
        encode(generation_of(2, cohort="code", **times)),
        encode(generation_of(3)),  # in 2023
        encode(generation_of(4, arm=Arm.BASELINE, speculation=None, **times)),
    ]
    with http_of(new_settings(kind)) as http:
        kind_of_body = {"Content-Type": "application/x-protobuf"}
        http.post("/v1/traces", content=body_of(spans), headers=kind_of_body).raise_for_status()
        policy = registration()
        document = {
            "policy_name": policy.policy_name,
            "policy_hash": policy.policy_hash,
            "text": policy.text,
        }
        http.post("/api/v1/rollouts/k4/policies", json=document).raise_for_status()
        found = samples(http)
    assert found["generations"] == {("k4", "candidate"): 2, ("k4", "baseline"): 1}
    assert found["draft_tokens"] == {("k4", "candidate"): 20}
    assert found["accepted_tokens"] == {("k4", "candidate"): 12}
    assert "verdict" not in found


def test_older_rollouts_and_further_cohorts_are_counted(database_url: str) -> None:
    """The newest rollouts; of a verdict the pool, then what fails, then the largest cohorts."""
    cohorts = [f"c{number:02}" for number in range(MOST_COHORTS + 2)]
    cells = [finding(None, "e2e", "p95_ratio")]
    cells += [finding(name, "e2e", "p95_ratio", n=100 + n) for n, name in enumerate(cohorts[1:])]
    cells += [finding(cohorts[0], "e2e", "p95_ratio", n=1, outcome=Outcome.FAIL)]
    cells += [finding(None, "e2e", "p95_ratio", margin=1.5)]  # the same cell to another margin
    with Client.local(database_url) as client:
        for number in range(MOST_ROLLOUTS + 3):
            client.set_switch(f"r{number:02}", Switch.ON, reason="begin")
        judge(client, "r00", *cells)  # the newest decision
        found = scraped(database_url)
    assert found["rollouts_left_out"] == {(): 3}
    named = {labels[0] for labels in found["switch_on"]}
    assert named == {"r00"} | {f"r{number:02}" for number in range(4, MOST_ROLLOUTS + 3)}
    told = [labels[1] for labels in found["cell_margin"]]
    assert told == ["", cohorts[0], *reversed(cohorts[3:])]
    assert found["cells_left_out"] == {("r00",): 3}
    assert found["cell_margin"]["r00", "", "e2e", "p95_ratio", "prove"] == 1.1


def test_scrapes_share_what_was_read(database_url: str) -> None:
    """However often it is scraped, the database is asked once in some seconds."""
    app = create_app(Settings(database_url=database_url))
    transport = InProcessTransport(app, app.router.lifespan_context(app))
    with httpx.Client(base_url="http://collector", transport=transport) as http:
        seen: list[str] = []

        def before(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
            seen.extend(re.findall(r"FROM switch_event", statement))

        event.listen(app.state.collector.store.engine, "before_cursor_execute", before)
        for _ in range(5):
            samples(http)
    assert len(seen) in (2, 4)  # of one reading, or of two if the machine was slow
