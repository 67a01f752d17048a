"""Prompts that a run asks again and again: which, when, and what is stored of them."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import poisoned_engine
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollout_files import invoke, told, written

from collector.client import Client
from collector.contract import Arm, Generation
from engine_adapter.run.load_shape import Load, SentinelLoad
from engine_adapter.run.look_plan import LookPlan, Step
from engine_adapter.run.rollout_file import Rollout
from engine_adapter.run.schedule import Turn, turns
from engine_adapter.run.sentinels import chosen
from engine_adapter.workload import Prompt

SHARED = "You answer questions about the timetable of the ferry to the island of Vlieland. "


def prompt(number: int, cohort: str = "c", text: str = "") -> Prompt:
    return Prompt(id=f"p{number}", cohort=cohort, prompt=f"{text}{number:03}", temperature=0.7)


def planned(prompts: list[Prompt], **load: Any) -> list[Turn]:
    shape = Load(warmup=0, **load)
    return list(turns(prompts, shape, seed=1, sentinels=chosen([(p,) for p in prompts], shape)))


def test_prompts_that_share_a_prefix_are_chosen_from_different_cohorts() -> None:
    """The neighbour is the prompt that shares most, else the prompt itself with more text."""
    prompts = [prompt(i, cohort) for i, cohort in enumerate(["a"] * 5 + ["b"] * 5)]
    prompts += [prompt(20, "b", SHARED), prompt(21, "b", SHARED)]
    one, other = chosen([(p,) for p in prompts], Load())
    assert {one.prompt.id, one.neighbour.id} == {"p20", "p21"}
    assert (other.prompt.cohort, other.neighbour.id) == ("a", f"{other.prompt.id}/neighbour")
    assert other.neighbour.chat[0].text.startswith(other.prompt.chat[0].text)
    assert {p.temperature for found in (one, other) for p in found if p is not None} == {0}


@given(
    cohorts=st.lists(st.sampled_from("ab"), min_size=1, max_size=60),
    every=st.integers(1, 30),
    repeats=st.integers(1, 2),
    count=st.integers(0, 4),
)
def test_each_ask_is_of_both_arms_and_has_an_id_of_its_own(
    cohorts: list[str], every: int, repeats: int, count: int
) -> None:
    """The workload's own turns are as without sentinels; none are asked of a short run."""
    prompts = [prompt(i, cohort) for i, cohort in enumerate(cohorts)]
    load: dict[str, Any] = {"sentinels": {"prompts": count, "every": every}, "repeats": repeats}
    found = planned(prompts, **load)
    assert [t for t in found if t.sentinel is None] == planned(prompts, repeats=repeats,
        sentinels=False)  # fmt: skip
    asked = [t for t in found if t.sentinel is not None]
    keys = Counter((t.prompt.id, t.repeat, t.arm) for t in asked)
    assert set(keys.values()) <= {1}
    assert {(i, n) for i, n, _ in keys} == {(i, n) for i, n, arm in keys if arm == Arm.BASELINE}
    assert bool(asked) == (count > 0 and len(prompts) * repeats > every)
    assert not any(t.is_end for t in asked)


def test_a_sentinel_is_asked_alone_and_after_its_neighbour_by_turns() -> None:
    """The neighbour precedes it directly, on the same arm."""
    found = planned([prompt(i) for i in range(200)], sentinels={"prompts": 1, "every": 10})
    places = [i for i, t in enumerate(found) if t.sentinel is not None and t.arm == Arm.CANDIDATE]
    name = chosen([(prompt(i),) for i in range(200)], Load())[0].prompt.id
    own = [found[i] for i in places if found[i].sentinel == name]
    assert [t.after is not None for t in own] == [False, *[True, False] * 9, True][: len(own)]
    for i in places:
        if found[i].after is not None:
            assert (found[i - 1].sentinel, found[i - 1].arm) == (found[i].after, found[i].arm)


@pytest.mark.parametrize(
    ("given", "visits", "spacing"),
    [(False, 1000, None), (True, 25, None), (True, 26, 25), ({"every": 3}, 4, 3),
     (True, 20_000, 100), ({"prompts": 0}, 1000, None)],
)  # fmt: skip
def test_how_often_they_are_asked(given: Any, visits: int, spacing: int | None) -> None:
    """Every 25 requests, and more seldom in long runs; never where they are switched off."""
    assert SentinelLoad.model_validate(given).spacing(visits) == spacing


def test_looks_number_them_apart(tmp_path: Path) -> None:
    """Sentinels of different looks have different span ids, and count in no look's pairs."""
    lines = (prompt(i, "ab"[i % 2]).model_dump(mode="json", exclude_none=True) for i in range(120))
    (tmp_path / "w.jsonl").write_text("\n".join(map(json.dumps, lines)))
    route = {"engine": "openai", "url": "http://127.0.0.1:1/v1", "model": "m"}
    rollout = Rollout.model_validate(
        {"rollout": "r", "workload": str(tmp_path / "w.jsonl"), "baseline": route}
        | {"candidate": route, "load": {"sentinels": {"every": 4}, "repeats": 2}}
    )
    plan = LookPlan(rollout)
    keys = Counter[Any]()
    for look in range(1, 10):
        for step in ({"a": look}, {"b": look}):
            found = [
                t
                for t in plan.turns(Step(step, plan.arms))
                if t.sentinel is not None and not t.warmup
            ]
            assert found
            assert all(t.look is None for t in found)
            keys.update((t.prompt.id, t.repeat, t.arm) for t in found)
    assert set(keys.values()) == {1}
    assert all(t.sentinel is None for t in plan.all_turns())


def experiment(folder: Path, url: str, engine: str, **load: Any) -> Path:
    """Write a rollout of 60 prompts of one prefix whose candidate is that engine."""
    prompts = ({"id": f"p{i}", "cohort": "c", "prompt": f"{SHARED}{i:03}"} for i in range(60))
    route = {"engine": "openai", "model": "m"}
    document = {
        "baseline": route | {"url": f"{engine}/sound/v1"},
        "candidate": route | {"url": f"{engine}/v1"},
        "load": {"warmup": 1, "sentinels": {"prompts": 1, "every": 2}} | load,
        "collector": {"url": url},
    }
    return written(folder, document, prompts)


def test_a_poisoned_prefix_is_found_and_named(tmp_path: Path, url: str) -> None:
    """From the request on that poisons it; both arms' other answers are pairs as ever."""
    with (
        poisoned_engine.running(trigger=f"{SHARED}030", prefix=SHARED) as engine,
    ):
        path = experiment(tmp_path, url, engine)
        told("run", path)
        gated = invoke("gate", "r", "--collector", url, "--json")
        with Client(url) as client:
            stored = list(client.generations("r"))
            assert client.unpaired("r") == ()
    verdict = json.loads(gated.stdout)
    by_arm = defaultdict[str, list[Any]](list)
    for one in verdict["sentinels"]:
        by_arm[one["arm"]].append(one)
    assert [one["changed"] for one in by_arm["baseline"]] == [0] * len(by_arm["baseline"])
    assert any(one["depends"] for one in by_arm["candidate"])
    change = next(one["first_change"] for one in by_arm["candidate"] if one["first_change"])
    assert change["prompt_id"] in {"p30", "p31", "p32"}
    assert "the candidate's answers depend on the requests before them" in verdict["summary"]
    assert verdict["pairs"] == 60
    _assert_plain(stored)


def _assert_plain(stored: list[Generation]) -> None:
    """Sentinels have no prompt id, a digest, and no session."""
    asked = [one for one in stored if one.sentinel is not None]
    assert len(stored) == 2 * 60 + len(asked)
    assert all(one.prompt_id is None and one.conversation_id is None for one in asked)
    assert all(one.sentinel_answer and one.temperature == 0 for one in asked)


def test_the_switch_turns_them_off(tmp_path: Path, url: str) -> None:
    """`sentinels: false` asks the workload alone."""
    with (
        poisoned_engine.running(trigger="none", prefix="none") as engine,
    ):
        path = experiment(tmp_path, url, engine, sentinels=False)
        assert told("run", path)["generations"] == 120
