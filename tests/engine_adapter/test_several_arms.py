"""Several candidates beside one baseline: the schedule, the file, and what a run stores."""

import json
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import fake_openai
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rollout_files import changed, invoke, told, written

from collector.client import Client
from collector.contract import Arm, Generation
from engine_adapter.errors import RolloutFileError
from engine_adapter.routes import HttpRoute
from engine_adapter.run import rollout_file
from engine_adapter.run.load_shape import Load
from engine_adapter.run.schedule import balanced_orders, turns
from engine_adapter.workload import Prompt

COHORTS = ("chat", "code", "rag")


@given(arms=st.integers(2, 12))
def test_orders_are_balanced(arms: int) -> None:
    """Each arm has each place, and follows each other arm, equally often."""
    orders = balanced_orders(arms)
    assert {tuple(sorted(order)) for order in orders} == {tuple(range(arms))}
    places = Counter((arm, place) for order in orders for place, arm in enumerate(order))
    assert set(places.values()) == {len(orders) // arms}
    assert len(places) == arms**2
    follows = Counter(pair for order in orders for pair in pairwise(order))
    assert len(follows) == arms * (arms - 1)
    assert len(set(follows.values())) == 1


@given(
    names=st.integers(2, 5).map(lambda n: ["baseline", *(f"k{i}" for i in range(n - 1))]),
    cycle=st.permutations(COHORTS),
    rounds=st.integers(1, 2),
)
def test_each_cohort_is_balanced_by_itself(names: list[str], cycle: list[str], rounds: int) -> None:
    """Cohorts that alternate in the workload do not tie an arm to a place."""
    visits = rounds * len(balanced_orders(len(names)))
    prompts = [Prompt(id=f"{c}{i}", cohort=c, prompt="x") for i in range(visits) for c in cycle]
    asked = list(turns(prompts, Load(warmup=0), seed=1, arms=names))
    places = Counter[tuple[str, str, int]]()
    for place, turn in enumerate(asked):
        places[turn.prompt.cohort, turn.arm, place % len(names)] += 1
    assert set(places.values()) == {visits // len(names)}
    assert {turn.copies for turn in asked if turn.arm == "baseline"} == {
        tuple(range(len(names) - 1))
    }
    assert {turn.copies for turn in asked if turn.arm != "baseline"} == {(0,)}


def test_a_random_order_shuffles_all_arms() -> None:
    """Each visit asks every arm once, in an order drawn from the seed."""
    prompts = [Prompt(id=f"p{i}", cohort="chat", prompt="x") for i in range(60)]
    load, names = Load(warmup=0, order="random"), ("baseline", "a", "b")
    asked = [turn.arm for turn in turns(prompts, load, seed=1, arms=names)]
    visits = [tuple(asked[at : at + 3]) for at in range(0, len(asked), 3)]
    assert {tuple(sorted(visit)) for visit in visits} == {("a", "b", "baseline")}
    assert len(set(visits)) == 6


ROUTE = "{engine: openai, url: 'http://h/v1', model: m}"
FILE = f"""
rollout: r
workload: w.jsonl
baseline: {ROUTE}
arms:
  k2: {ROUTE}
  fp8: {{change: kv_cache_dtype, engine: openai, url: 'http://h/v1', model: m}}
  both: {{change: other, combines: [k2, fp8], engine: openai, url: 'http://h/v1', model: m}}
"""


def read(folder: Path, text: str) -> rollout_file.Rollout:
    path = folder / "rollout.yaml"
    path.write_text(text)
    return rollout_file.read(path)


def test_an_arm_holds_its_route_and_its_change(tmp_path: Path) -> None:
    """The keys of a route stand beside the arm's own; each candidate has a rollout of its own."""
    rollout = read(tmp_path, FILE)
    assert list(rollout.routes) == ["baseline", "k2", "fp8", "both"]
    assert [rollout.change_of(arm).value for arm in ("k2", "fp8", "both")] == [
        "speculation",
        "kv_cache_dtype",
        "other",
    ]
    family = rollout.family
    assert (family.rollouts, family.combined) == (
        ("r-k2", "r-fp8", "r-both"),
        {"both": ("k2", "fp8")},
    )
    assert rollout.rollouts_of("baseline") == family.rollouts
    assert rollout.rollouts_of("fp8") == ("r-fp8",)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("  k2: ", "  baseline: ", "arms.baseline: the name is taken"),
        ("  k2: ", "  candidate: ", "arms.candidate: the name is taken"),
        ("  k2: ", "  fp8: ", "the key 'fp8' stands twice"),
        ("  k2: ", "  FP8: ", "arms: FP8 and fp8 differ only in case"),
        ("  k2: ", '  "k\\t2": ', "wanted"),
        ("  k2: ", f"  {'k' * 65}: ", "wanted"),
        ("rollout: r", f"rollout: {'r' * 198}", "longer than 200 characters"),
        ("arms:", f"candidate: {ROUTE}\narms:", "arms: go without `candidate`"),
        ("[k2, fp8]", "[k2, k2]", "arms.both.combines: wanted two other arms, out of k2, fp8"),
        ("[k2, fp8]", "[k2, both]", "arms.both.combines: wanted two other arms"),
        ("[k2, fp8]", "[k2, k4]", "arms.both.combines: wanted two other arms"),
        ("[k2, fp8]", "[k2]", "arms.both.combines"),
        ("change: other", "chance: other", "arms.both.chance: unknown key; did you mean `change`"),
        ("change: other", "change: faster", "arms.both.change"),
    ],
)  # fmt: skip
def test_unusable_arms_are_named(tmp_path: Path, before: str, after: str, said: str) -> None:
    """Each error names the file and the key."""
    assert before in FILE
    with pytest.raises(RolloutFileError) as caught:
        read(tmp_path, FILE.replace(before, after))
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'rollout.yaml'}: ")
    assert said in text or (said == "wanted" and "arms" in text)


def test_one_candidate_goes_under_its_own_key(tmp_path: Path) -> None:
    """A single name under `arms`, or none at all, is an error that says where it goes."""
    single = FILE.partition("  fp8:")[0]
    with pytest.raises(RolloutFileError, match="arms: wanted two or more; a single one goes into"):
        read(tmp_path, single)
    with pytest.raises(RolloutFileError, match="candidate: required key is missing"):
        read(tmp_path, single.partition("arms:")[0])


def test_a_sweep_takes_one_candidate(tmp_path: Path) -> None:
    """It varies k or the load of one candidate, and says so before anything starts."""
    read(tmp_path, FILE)
    result = invoke("sweep", tmp_path / "rollout.yaml")
    assert (result.exit_code, "arms: a sweep varies one candidate" in result.stderr) == (2, True)


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """Write a rollout file of three candidates, whose servers are started by their command."""
    prompts = [{"id": f"p{i}", "cohort": COHORTS[i % 3], "prompt": str(i)} for i in range(9)]
    prompts[8] |= {"session": "s8", "turn": 1}
    route = {"engine": "openai", "model": "m", "url": "http://127.0.0.1:{port}/v1"}
    route |= {"start": f"{sys.executable} {fake_openai.__file__} {{port}}"}
    content = {
        "baseline": route,
        "arms": {
            "k2": route,
            "fp8": {"change": "kv_cache_dtype"} | route,
            "both": {"change": "other", "combines": ["k2", "fp8"]} | route,
        },
        "load": {"warmup": 1},
    }
    return written(tmp_path, content, prompts)


def stored(client: Client, rollout: str) -> dict[str, dict[str, Generation]]:
    """Return a rollout's generations by arm and prompt."""
    found: dict[str, dict[str, Generation]] = defaultdict(dict)
    for one in client.generations(rollout):
        assert one.prompt_id not in found[one.arm.value]
        found[one.arm.value][str(one.prompt_id)] = one
    return found


ROLLOUTS = {"r-k2": "speculation", "r-fp8": "kv_cache_dtype", "r-both": "other"}


def test_each_candidate_is_paired_with_the_same_baseline(experiment: Path, url: str) -> None:
    """The baseline answers once; its answer is in every candidate's rollout, at the same time."""
    counts = told("run", experiment, "--collector", url)
    again = told("run", experiment, "--collector", url)
    with Client(url) as client:
        found = {name: stored(client, name) for name in ROLLOUTS}
        policies = {name: client.history(name).registered for name in ("r", *ROLLOUTS)}
    assert (counts["generations"], again["generations"], again["resumed"]) == (36, 0, 36)
    assert {arm: one["generations"] for arm, one in counts["arms"].items()} == dict.fromkeys(
        ("baseline", "k2", "fp8", "both"), 9
    )
    for name, change in ROLLOUTS.items():
        assert {arm: len(of) for arm, of in found[name].items()} == dict.fromkeys(Arm, 9)
        for one in (one for of in found[name].values() for one in of.values()):
            assert one.change == change
    for prompt in (f"p{i}" for i in range(9)):
        copies = [found[name][Arm.BASELINE][prompt] for name in ROLLOUTS]
        assert len({one.span_id for one in copies} | {one.trace_id for one in copies}) == 6
        assert len({(one.start_unix_ns, one.end_unix_ns, one.launch) for one in copies}) == 1
        routes = {found[name][Arm.CANDIDATE][prompt].route for name in ROLLOUTS}
        assert routes == {"k2", "fp8", "both"}
    launches = {one.launch for of in found.values() for arm in of.values() for one in arm.values()}
    assert len(launches) == 4
    assert len({of and of.policy_hash for of in policies.values()}) == 1


def test_a_copy_that_was_not_stored_is_asked_for_again(
    experiment: Path, tmp_path: Path, url: str
) -> None:
    """A baseline's turn is done when every candidate's rollout has it."""
    assert invoke("run", experiment, "--collector", url).exit_code == 0
    with Client(url) as client:
        last = stored(client, "r-both")[Arm.BASELINE]["p3"]
    journal = tmp_path / "rollout.yaml.journal"
    journal.write_text(journal.read_text().replace(f"{last.span_id}\n", ""))
    counts = told("run", experiment, "--collector", url)
    assert (counts["resumed"], counts["generations"]) == (35, 1)
    assert {arm: one["generations"] for arm, one in counts["arms"].items()} == {
        "baseline": 1, "k2": 0, "fp8": 0, "both": 0,
    }  # fmt: skip


def test_the_check_names_the_candidate(experiment: Path) -> None:
    """Each finding on a pair of arms says which candidate it is about."""
    arms = yaml.safe_load(experiment.read_text())["arms"]
    arms["fp8"]["extra_body"] = {"min_p": 0.1}
    changed(experiment, arms=arms)
    result = invoke("check", experiment, "--json")
    found: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
    messages = [one["message"] for one in found if one["check"] == "parameters"]
    assert messages == ["fp8: the arms get different request parameters"]


def test_a_merge_may_override_keys(tmp_path: Path) -> None:
    """YAML's `<<` is no duplicate key, wherever the mapping stands that it repeats."""
    text = FILE.replace("both: {", "both: &both {<<: {timeout_s: 5, model: n}, ")
    first = f"baseline: {ROUTE}"
    assert first in text
    route = read(tmp_path, text).routes["both"]
    assert isinstance(route, HttpRoute)
    assert (route.timeout_s, route.model) == (5, "m")
    deeper = (
        FILE.replace(f"k2: {ROUTE}", f"k2: &k2 {{<<: {ROUTE}, model: n}}") + "sampling: {<<: *k2}\n"
    )
    with pytest.raises(RolloutFileError, match=r"sampling\.") as caught:
        read(tmp_path, deeper)
    assert "twice" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_example_runs_on_real_models(tmp_path: Path, url: str) -> None:
    """Four candidates of the docs' example: who drafts, whose answers are whose, and the grid."""
    root = Path(__file__).parents[2]
    text = (root / "docs" / "examples" / "arms.yaml").read_text()
    content = yaml.safe_load(text.replace("../../demo", str(root / "demo")))
    content["sampling"] |= {"max_tokens": 24}
    content["load"] |= {"max_prompts": 16}
    path = written(tmp_path, content)
    rollouts = {arm: f"several-{arm}" for arm in content["arms"]}
    ran = invoke("run", path, "--collector", url)
    assert ran.exit_code == 0, ran.stderr
    assert invoke("evaluate", *rollouts.values(), "--collector", url).exit_code == 0
    gated = invoke("gate", "several", "--json", "--collector", url)
    with Client(url) as client:
        found = {arm: stored(client, name) for arm, name in rollouts.items()}
    document = json.loads(gated.stdout)
    assert gated.exit_code == {"pass": 0, "fail": 1, "inconclusive": 3}[document["outcome"]]
    assert [row["cohort"] for row in document["rows"]] == [None, "chat", "code", "rag", "tool_call"]
    assert {one["metric"] for one in document["interactions"]} >= {"e2e", "task_completion"}
    assert {one["arm"] for one in document["interactions"]} == {"bf16_k4"}
    for arm, of in found.items():
        assert {side: len(answers) for side, answers in of.items()} == dict.fromkeys(Arm, 16)
        drafts = [one.speculation is not None for one in of[Arm.CANDIDATE].values()]
        assert set(drafts) == {arm != "bf16"}
        for prompt, one in of[Arm.BASELINE].items():
            assert one.start_unix_ns == found["k4"][Arm.BASELINE][prompt].start_unix_ns
    for prompt, one in found["k4"][Arm.CANDIDATE].items():  # lossless, up to ties
        assert one.output_tokens == found["lookup"][Arm.CANDIDATE][prompt].output_tokens
