"""Runs that end when they are decided, of several candidates, of launches, and of answers alike."""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import fake_openai
import pytest
import scripted_server
from rollout_files import invoke, tasks
from scripted_server import Route, chat

from collector.client import Client
from collector.contract import Arm, Generation
from engine_adapter.cli.until_decided import next_step
from engine_adapter.run import rollout_file
from engine_adapter.run.look_plan import LookPlan, Looks, Step
from evals.until_decided import NextLooks

PROMPTS = 60
"""Of each cohort."""
POLICY = """
version: 1
name: tasks
validity: {speculation: optional}
prove:
  - {metric: task_completion, stat: diff, min: -0.20, scope: cohort}
"""


def write(folder: Path, policy: str = POLICY, **document: Any) -> Path:
    return tasks(folder, PROMPTS, policy, **document)


def run(path: Path, url: str, *options: str) -> tuple[int, dict[str, Any], str]:
    """Run until decided; return the exit code, the JSON, and what was said."""
    done = invoke("run", path, "--until-decided", "--json", "--collector", url, *options)
    return (
        done.exit_code,
        json.loads(done.stdout) if done.stdout else {},
        " ".join(done.stderr.split()),
    )


def stored(url: str, rollout: str) -> list[Generation]:
    """Return a rollout's generations without sentinels; each pair's sides are there once."""
    with Client(url) as client:
        made = [one for one in client.generations(rollout) if one.sentinel is None]
    assert set(Counter((one.prompt_id, one.arm) for one in made).values()) == {1}
    return made


@pytest.mark.slow
def test_a_candidate_that_is_decided_is_asked_nothing_more(tmp_path: Path, url: str) -> None:
    """The broken one ends at its harm, the others share the baseline's answers to their end."""
    with (
        scripted_server.running(Route(chat(["yes"]))) as right,
        scripted_server.running(Route(chat(["no"]))) as wrong,
    ):
        routes = {
            name: {"engine": "openai", "url": server.url, "model": "m"}
            for name, server in (("good", right), ("broken", wrong), ("twin", right))
        }
        load = {"warmup": 1, "concurrency": 4}
        path = write(tmp_path, baseline=routes["good"], arms=routes, load=load)
        code, found, said = run(path, url)
        assert code == 0, said
        of = {name: stored(url, f"r-{name}") for name in routes}
        again = run(path, url)
    release = found["family"]["rows"][0]["answers"]
    assert {one["arm"]: one["answer"] for one in release} == {
        "good": "yes",
        "broken": "no",
        "twin": "yes",
    }
    verdicts = found["family"]["verdicts"]
    assert {name: one["incomplete_pairs"] for name, one in verdicts.items()} == dict.fromkeys(of, 0)
    assert verdicts["broken"]["pairs"] < verdicts["good"]["pairs"] < 2 * PROMPTS
    answered = {name: Counter(one.arm for one in made) for name, made in of.items()}
    assert answered == {n: dict.fromkeys(Arm, one["pairs"]) for n, one in verdicts.items()}
    asked = found["arms"]["baseline"]["generations"]
    assert asked < sum(one["pairs"] for one in verdicts.values())
    assert "broken: " in said
    assert "pairs of good, twin" in said
    assert (again[0], again[1]["generations"]) == (0, 0)


def test_each_look_has_a_launch_of_its_own(tmp_path: Path, url: str) -> None:
    """Its servers answer its pairs alone; without the policy's word nothing is begun."""
    route = {"engine": "openai", "model": "m", "url": "http://127.0.0.1:{port}/v1"}
    route |= {"start": f"{sys.executable} {fake_openai.__file__} {{port}}"}
    policy = POLICY.replace("task_completion", "failures").replace("min: -0.20", "max: 0.10")
    experiment = {"baseline": route, "candidate": route, "load": {"warmup": 1, "launches": 3}}
    code, _, said = run(write(tmp_path, policy, **experiment), url)
    assert (code, "launches.min: wanted 3 to 3 (got none)" in said) == (2, True), said
    path = write(tmp_path, policy + "launches: {min: 3}\n", **experiment | {"rollout": "s"})
    code, found, said = run(path, url)
    assert code in (0, 3), said
    launches = defaultdict[tuple[int | None, Arm | None], set[str | None]](set)
    for one in stored(url, "s"):
        launches[one.look, one.arm].add(one.launch)
    assert {len(names) for names in launches.values()} == {1}
    assert len({name for names in launches.values() for name in names}) == len(launches)
    assert len(launches) == 2 * found["verdict"]["looks"][0]["taken"]
    assert "next: every cohort to look 1 of 3, 40 pairs" in said


@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("no", 3)])
def test_greedy_answers_are_compared_at_the_looks(
    tmp_path: Path, url: str, answer: str, code: int
) -> None:
    """Equal ones pass; of others nobody can tell without the model, so that the run ends."""
    policy = POLICY.replace("task_completion", "failures").replace("min: -0.20", "max: 0.20")
    with (
        scripted_server.running(Route(chat(["yes"]))) as baseline,
        scripted_server.running(Route(chat([answer]))) as candidate,
    ):
        routes = {
            name: {"engine": "openai", "url": server.url, "model": "m"}
            for name, server in (("baseline", baseline), ("candidate", candidate))
        }
        path = write(tmp_path, policy + "lossless: {}\n", **routes, load={"warmup": 1})
        found = run(path, url)
    assert found[0] == code, found[2]
    verdict = found[1]["verdict"]
    assert verdict["pairs"] < 2 * PROMPTS
    greedy = next(one for one in verdict["findings"] if one["metric"] == "greedy_divergence")
    assert greedy["outcome"] == ("pass" if code == 0 else "inconclusive")
    assert ("--rescore" in greedy["message"]) == (code == 3)


# --- which candidates answer next


def wants(looks: Looks) -> NextLooks:
    return NextLooks("inconclusive", (), looks, {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "looks", "arms"),
    [
        ({"a": {"chat": 2, "code": 2}, "b": {"chat": 2, "code": 2}}, {"chat": 2, "code": 2}, "ab"),
        ({"a": {"chat": 2, "code": 2}, "b": {"chat": 2}}, {"chat": 2}, "ab"),
        ({"a": {"chat": 2, "code": 2}, "b": {"chat": 3}}, {"chat": 3}, "b"),
        ({"a": {}, "b": {"chat": 3}}, {"chat": 3}, "b"),
        ({"a": {}, "b": {}}, {}, ""),
    ],
)
def test_the_candidate_that_wants_the_fewest_cohorts_comes_first(
    wanted: dict[str, Looks], looks: Looks, arms: str
) -> None:
    """With all that want the same looks of these cohorts."""
    found = {arm: wants(of) for arm, of in wanted.items()}
    assert next_step(found, Step({"chat": 1}, "ab")) == (looks, list(arms))


def test_a_baselines_answer_counts_in_the_rollouts_of_those_that_are_asked(tmp_path: Path) -> None:
    """It has the same ids there whoever is asked beside."""
    route = {"engine": "openai", "url": "http://localhost:1/v1", "model": "m"}
    arms = dict.fromkeys(("a", "b", "c"), route)
    plan = LookPlan(rollout_file.read(write(tmp_path, baseline=route, arms=arms)))
    turns = plan.turns(Step({"chat": 1}, ("a", "c")))
    assert {turn.arm: turn.copies for turn in turns} == {"baseline": (0, 2), "a": (0,), "c": (0,)}
    assert plan.pairs({"chat": 1}) == 6
