"""Runs that end when they are decided: real processes, a real collector, scripted servers."""

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import scripted_server
from rollout_files import begun, changed, invoke, run_command, tasks, told, written
from scripted_server import Route, chat

from collector.client import Client
from collector.contract import Generation
from demo.collector_process import running
from engine_adapter.cli.until_decided import budget_of
from engine_adapter.errors import RolloutFileError, WorkloadError
from engine_adapter.run import rollout_file
from engine_adapter.run.look_plan import SHARES, LookPlan, Step
from engine_adapter.run.phases import Budget

COHORTS = ("chat", "code")
PROMPTS = 80
"""Of each cohort."""
POLICY = """
version: 1
name: tasks
validity: {speculation: optional}
prove:
  - {metric: task_completion, stat: diff, min: -0.10, scope: cohort}
"""


class Experiment:
    """A rollout file and its servers."""

    def __init__(self, path: Path, url: str) -> None:
        self.path, self.url = path, url

    def run(self, *options: str, code: int) -> dict[str, Any]:
        """Run to the end, which has this exit code, and return what it printed."""
        asked = run_command(self.path, "--until-decided", *options)
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        found: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
        return found | {"said": " ".join(done.stderr.split())}

    def stored(self) -> list[Generation]:
        """Return all generations."""
        with Client(self.url) as client:
            return list(client.generations("r"))

    def begun(self) -> AbstractContextManager["subprocess.Popen[str]"]:
        """Run in a process, and give it once some generations are stored."""
        return begun(self.path, "--until-decided", stored=25)


Make = Callable[..., Experiment]


@pytest.fixture
def experiment(tmp_path: Path, url: str) -> Iterator[Make]:
    """Give a function that writes a rollout file; both servers answer `yes`, which is right."""
    with (
        scripted_server.running(Route(chat(["yes"], ttft_s=0.02))) as right,
        scripted_server.running(Route(chat(["no"], ttft_s=0.02))) as wrong,
    ):

        def make(*, harmed: bool = False, policy: str = POLICY, **load: Any) -> Experiment:
            servers = {"baseline": right, "candidate": wrong if harmed else right}
            document = {
                arm: {"engine": "openai", "url": server.url, "model": "m"}
                for arm, server in servers.items()
            }
            document["load"] = {"warmup": 1, "concurrency": 4} | load
            document["collector"] = {"url": url}
            return Experiment(tasks(tmp_path, PROMPTS, policy, **document), url)

        yield make


@pytest.mark.slow
def test_a_good_candidate_passes_before_the_prompts_run_out(experiment: Make) -> None:
    """Exit 0 at an early look; the gate says the same; plain runs and lone spans change nothing."""
    here = experiment()
    found = here.run(code=0)
    verdict = found["verdict"]
    assert verdict["outcome"] == "pass"
    assert found["generations"] == 2 * verdict["pairs"] < 2 * 2 * PROMPTS
    assert {one["cohort"]: one["decided_at"] for one in verdict["looks"]} == dict.fromkeys(
        COHORTS, verdict["looks"][0]["taken"]
    )
    assert "next: every cohort to look 1 of 9, 16 pairs" in found["said"]
    assert "waiting for share of completed tasks, in `chat`" in found["said"]
    again = told("gate", "r", "--collector", here.url)
    assert [(f["outcome"], f["look"], f["lower"]) for f in again["findings"]] == [
        (f["outcome"], f["look"], f["lower"]) for f in verdict["findings"]
    ]
    assert again["history"]["look"] == 1
    assert here.run(code=0)["generations"] == 0
    plain = invoke("run", here.path)
    assert plain.exit_code == 2
    assert "'r' was begun with --until-decided" in " ".join(plain.stderr.split())


def test_harm_ends_a_run_at_once(experiment: Make) -> None:
    """Exit 1, after a few looks of one cohort or of both."""
    found = experiment(harmed=True).run(code=1)
    assert found["verdict"]["outcome"] == "fail"
    assert found["generations"] <= 2 * 2 * PROMPTS * 0.3


@pytest.mark.slow
def test_the_prompts_run_out(experiment: Make) -> None:
    """Exit 3, and the verdict says how many more it would take."""
    tight = POLICY.replace("-0.10", "-0.03")
    found = experiment(policy=tight).run(code=3)
    verdict = found["verdict"]
    assert (verdict["pairs"], found["budget_reached"]) == (2 * PROMPTS, False)
    assert {one["taken"] for one in verdict["looks"]} == {len(SHARES)}
    assert {one["decided_at"] for one in verdict["looks"]} == {None}
    assert verdict["prompts_needed"] > 0


@pytest.mark.slow
def test_a_budget_of_pairs(experiment: Make) -> None:
    """A look that would exceed it is not begun; a larger one goes on, under the same policy."""
    here = experiment()
    found = here.run("--budget", "40", code=3)
    assert (found["generations"], found["budget_reached"]) == (2 * 32, True)
    assert "the budget is used up" in found["said"]
    (here.path.parent / "policy.yaml").write_text(POLICY.replace("-0.10", "-0.50"))
    further = here.run("--budget", "160", code=0)
    assert further["resumed"] == 2 * 32
    assert further["verdict"]["policy_hash"] == found["verdict"]["policy_hash"]


@pytest.mark.slow
def test_a_budget_of_time(experiment: Make) -> None:
    """What was answered is stored, and does not count until its look is complete."""
    here = experiment(mode="constant", rate=2)
    found = here.run("--budget", "6s", code=3)
    assert found["budget_reached"]
    assert 0 < found["generations"] < 2 * 2 * PROMPTS
    assert len(here.stored()) == found["generations"]


@pytest.mark.slow
@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_goes_on(experiment: Make, ended_by: signal.Signals) -> None:
    """The store is its state: no pair is asked twice, and the looks stay where they were."""
    here = experiment()
    with here.begun() as process:
        os.kill(process.pid, ended_by)
        _, said = process.communicate()
    if ended_by is signal.SIGINT:
        assert process.returncode == 130
        assert f"draftgate run {here.path} --until-decided goes on" in said
    found = here.run(code=0)
    assert found["resumed"] > 0
    stored = Counter((g.prompt_id, g.arm) for g in here.stored())
    assert set(stored.values()) == {1}
    sizes = {one["cohort"]: one["pairs"] for one in found["verdict"]["looks"]}
    for cohort in COHORTS:
        first = Counter(g.look for g in here.stored() if g.cohort == cohort)
        assert first[1] == 2 * sizes[cohort][0]


def test_a_collector_that_stops_ends_a_run(
    tmp_path: Path, experiment: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2 in one line, with what to do."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")  # s for an export and its retries, not 10
    here = experiment(mode="constant", rate=5)
    with running(tmp_path / "other.db", tmp_path / "other.log") as url:
        changed(here.path, collector={"url": url})
        with here.begun() as process:
            pid = _listening(url)
            os.kill(pid, signal.SIGKILL)
            _, said = process.communicate()
    assert (process.returncode, "Traceback" in said) == (2, False), said
    assert "run again" in " ".join(said.split())


def _listening(url: str) -> int:
    """Return the id of the process that serves a collector."""
    port = httpx.URL(url).port
    (pid,) = {
        one.pid
        for one in psutil.net_connections("tcp")
        if one.status == psutil.CONN_LISTEN and one.laddr.port == port and one.pid is not None
    }
    return pid


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, Budget()),
        ("2h", Budget(seconds=7200)),
        ("1.5m", Budget(seconds=90)),
        ("30s", Budget(seconds=30)),
        ("4000", Budget(pairs=4000)),
    ],
)
def test_budgets(text: str | None, wanted: Budget) -> None:
    """A number with a unit is a time, one without is pairs."""
    assert budget_of(text) == wanted


@pytest.mark.parametrize("text", ["", "h", "0", "0h", "-1h", "2 h", "2d", "1.5", "1e3", "٣h"])
def test_other_budgets_are_refused(text: str) -> None:
    """With the two forms that are wanted."""
    with pytest.raises(RolloutFileError, match="--budget"):
        budget_of(text)


def test_a_budget_goes_with_until_decided(tmp_path: Path) -> None:
    """A plain run answers the whole workload."""
    found = invoke("run", tmp_path / "rollout.yaml", "--budget", "2h")
    assert found.exit_code == 2
    assert "goes with --until-decided" in found.output


# --- the division among looks


def plan_of(tmp_path: Path, lines: list[dict[str, Any]], **load: Any) -> LookPlan:
    """Return the plan of a workload."""
    route = {"engine": "openai", "url": "http://localhost:1/v1", "model": "m"}
    document = {"baseline": route, "candidate": route, "load": load}
    return LookPlan(rollout_file.read(written(tmp_path, document, lines)))


def test_looks_divide_every_cohort(tmp_path: Path) -> None:
    """Each prompt has one look, all of its repeats the same; the order is drawn from the seed."""
    lines = [
        {"id": f"{cohort}-{i:03}", "cohort": cohort, "prompt": "p"}
        for cohort, n in (("big", 50), ("small", 3))
        for i in range(n)
    ]
    plan = plan_of(tmp_path, lines, repeats=2)
    assert plan.sizes == {
        "big": (10, 20, 30, 40, 50, 60, 70, 80, 100),
        "small": (2, 2, 2, 4, 4, 4, 6, 6, 6),
    }
    turns = plan.all_turns()
    assert len(turns) == 2 * 2 * 53 == len({(t.prompt.id, t.repeat, t.arm) for t in turns})
    looks = {(t.prompt.id, t.look) for t in turns}
    assert len(looks) == 53
    first = sorted(name for name, look in looks if look == 1 and name.startswith("big"))
    assert len(first) == 5
    assert first != [f"big-{i:03}" for i in range(5)]
    assert plan_of(tmp_path, lines, repeats=2).all_turns() == turns
    step = plan.turns(Step({"big": 1, "small": 1}, plan.arms))
    assert [t.looks for t in step if t.warmup] == [None] * 8
    assert {t.looks for t in step if not t.warmup} == {
        "10 20 30 40 50 60 70 80 100",
        "2 2 2 4 4 4 6 6 6",
    }


def test_sessions_stay_whole(tmp_path: Path) -> None:
    """A session's turns have one look; with own histories its end is the only pair."""
    lines = [{"id": f"s{i}", "cohort": "c", "turns": ["a", "b", "c"]} for i in range(10)]
    plan = plan_of(tmp_path, lines, history="own")
    assert plan.sizes == {"c": (1, 2, 3, 4, 5, 6, 7, 8, 10)}
    by_session = {(t.session, t.look) for t in plan.all_turns()}
    assert len(by_session) == 10


def test_traces_are_refused(tmp_path: Path) -> None:
    """With the key that stands in the way."""
    lines = [{"id": f"p{i}", "cohort": "c", "prompt": "p"} for i in range(9)]
    with pytest.raises(RolloutFileError, match="a trace is replayed whole"):
        plan_of(tmp_path, lines, mode="trace", file="t.jsonl")


def test_sessions_of_two_cohorts_are_refused(tmp_path: Path) -> None:
    """Each cohort is judged at looks of its own."""
    lines = [
        {"id": f"{i}-{turn}", "cohort": f"c{turn}", "session": f"s{i}", "turn": turn,
         "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                      {"role": "user", "content": "c"}][: 2 * turn - 1]}
        for i in range(3)
        for turn in (1, 2)
    ]  # fmt: skip
    with pytest.raises(WorkloadError, match="turns of 2 cohorts"):
        plan_of(tmp_path, lines)
