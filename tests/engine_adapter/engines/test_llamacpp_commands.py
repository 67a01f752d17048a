"""`draftgate check`, `run` and `sweep` as a user has them, over llama.cpp's own server."""

import json
import sys
from pathlib import Path

import llamacpp_server
import psutil
import pytest
import yaml
from rollout_files import changed, invoke, told, written
from twenty_prompts import MODELS, ROOT

from collector.client import Client
from collector.contract import Arm


@pytest.fixture
def command(gguf_pair: dict[str, Path]) -> str:
    """Return the command that serves the demo's target, with its draft at the end."""
    program = f"{sys.executable} {llamacpp_server.PROGRAM} {gguf_pair['target']} --port {{port}}"
    return f"{program} --draft {gguf_pair['draft']}"


def rollout(folder: Path, command: str, k: str) -> Path:
    """Write a rollout whose two servers are started by their commands."""
    route = {"engine": "llamacpp", "model": "served", "url": "http://127.0.0.1:{port}/v1"}
    document = {
        "rollout": "gguf",
        "workload": str(ROOT / "demo" / "workload.jsonl"),
        "baseline": route | {"start": command.partition(" --draft ")[0]},
        "candidate": route | {"start": f"{command} --draft-tokens {k}"},
        "sampling": {"max_tokens": 24},
        "load": {"max_prompts": 3, "warmup": 0},
    }
    return written(folder, document)


def servers(command: str) -> list[str]:
    """Return the servers of this module's models: other workers' tests have their own."""
    folder = Path(command.rsplit(maxsplit=1)[-1]).parent
    lines = [" ".join(p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"])]
    return [
        line
        for line in lines
        if f"{llamacpp_server.PROGRAM} {folder}/" in line and "--port" in line
    ]


def test_check_starts_both_and_finds_a_sound_comparison(command: str, tmp_path: Path) -> None:
    """No error; each server is gone afterwards."""
    path = rollout(tmp_path, command, "3")
    findings = told("check", path)["findings"]
    assert "candidate_does_not_speculate" not in {one["check"] for one in findings}
    changed(path, candidate=yaml.safe_load(path.read_text())["baseline"])
    plain = json.loads(invoke("check", path, "--json").stdout)
    assert {"candidate_does_not_speculate"} <= {one["check"] for one in plain["findings"]}
    assert servers(command) == []


@pytest.mark.slow
def test_run_starts_both_and_stops_them(command: str, tmp_path: Path, url: str) -> None:
    """Both arms are stored, with counts on the candidate; the file runs again at other ports."""
    path = rollout(tmp_path, command, "3")
    first = told("run", path, "--collector", url)
    again = told("run", path, "--collector", url)
    with Client(url) as client:
        stored = list(client.generations("gguf"))
    assert (first["failed"], again["resumed"]) == (0, 6)
    counted = {one.arm: one.speculation for one in stored}
    assert counted[Arm.BASELINE] is None
    assert counted[Arm.CANDIDATE] is not None
    assert servers(command) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampling", "sampler", "outcome", "words"),
    [
        (
            {},
            "top_k=40 top_p=0.95 min_p=0.05 temperature=3",
            "inconclusive",
            "are expected not to be the likeliest",
        ),
        (
            {"top_k": 12, "top_p": 1, "min_p": 0},
            "top_k=12 temperature=3",
            "pass",
            "those that the seeds give",
        ),
    ],
)
def test_the_server_s_own_sampler_is_audited(
    command: str,
    tmp_path: Path,
    sampling: dict[str, float],
    sampler: str,
    outcome: str,
    words: str,
    url: str,
) -> None:
    """Its defaults count, in its order; each token is the one that the request's seed gives.

    Top-p .95 before the temperature leaves this target one token at nearly every place: no pass.
    """
    path = changed(
        rollout(tmp_path, command, "3"),
        sampling={"temperature": 3, "max_tokens": 48} | sampling,
        load={"max_prompts": 80, "warmup": 0},
    )
    assert invoke("run", path, "--collector", url).exit_code == 0
    audit = ["audit", "gguf", "--rescore", str(MODELS / "target"), "--json"]
    found = json.loads(invoke(*audit, "--collector", url).stdout)
    with Client(url) as client:
        stored = [one for one in client.generations("gguf") if one.sentinel is None]
        samplers = {one.sampler for one in stored}
    assert samplers == {sampler}
    assert found["tokens"] >= found["seeded"]["tokens"] > 1000, found
    assert (found["outcome"], found["baseline"]["seeded"]["tokens"] > 1000) == (outcome, True), (
        found
    )
    assert words in found["message"]


@pytest.mark.slow
def test_run_ends_when_it_is_decided(command: str, tmp_path: Path, url: str) -> None:
    """Two engines that answer alike pass before the workload is used up, and exit like the gate."""
    path = changed(rollout(tmp_path, command, "3"), load={"warmup": 1})
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\nname: failures\nprove:\n"
        "  - {metric: failures, stat: diff, max: 0.05, scope: pooled}\n"
        "guard:\n  - {metric: task_completion, stat: diff, min: -0.10, scope: cohort}\n"
    )
    options = ("--collector", url, "--policy", str(policy))
    verdict = told("run", path, *options, "--until-decided", "--budget", "10m")["verdict"]
    judged = told("gate", "gguf", "--collector", url, "--strict")
    pool = verdict["looks"][0]
    assert pool["cohort"] is None
    assert pool["decided_at"] == pool["taken"] < len(pool["pairs"])
    assert verdict["pairs"] == pool["pairs"][pool["taken"] - 1] < pool["pairs"][-1] == 200
    assert judged["looks"] == verdict["looks"]
    assert servers(command) == []


@pytest.mark.slow
def test_candidates_are_compared_until_decided(command: str, tmp_path: Path, url: str) -> None:
    """Another model's answers end it at the first launch; the drafting arm goes on to its pass."""
    path = rollout(tmp_path, command, "3")
    document = yaml.safe_load(path.read_text())
    drafting = document.pop("candidate")
    other = drafting | {"start": document["baseline"]["start"].replace("target.gguf", "draft.gguf")}
    document["arms"] = {"k3": drafting, "other": other | {"change": "other"}}
    document["load"] = {"max_prompts": 120, "warmup": 1, "launches": 3}
    written(tmp_path, document)
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\nname: same\nlaunches: {min: 3}\nlossless: {}\n"
        "prove: [{metric: failures, stat: diff, max: 0.10, scope: pooled}]\n"
    )
    options = ("--policy", str(policy), "--rescore", str(MODELS / "target"), "--until-decided")
    found = told("run", path, "--collector", url, *options)
    with Client(url) as client:
        launches = {
            name: {one.launch for one in client.generations(f"gguf-{name}")}
            for name in document["arms"]
        }
    verdicts = found["family"]["verdicts"]
    assert {name: (v["outcome"], v["pairs"]) for name, v in verdicts.items()} == {
        "k3": ("pass", 80),
        "other": ("fail", 40),
    }
    assert {name: len(of) for name, of in launches.items()} == {"k3": 4, "other": 2}
    failed = [f["metric"] for f in verdicts["other"]["findings"] if f["outcome"] == "fail"]
    assert failed == ["greedy_divergence"]
    assert servers(command) == []


def test_run_refuses_a_k_that_only_a_sweep_knows(command: str, tmp_path: Path, url: str) -> None:
    """The message names the route and what to write."""
    file = rollout(tmp_path, command, "{k}")
    found = invoke("run", file, "--no-journal", "--collector", url)
    assert found.exit_code == 2
    assert "candidate: start holds {k}" in " ".join(found.stderr.split())


@pytest.mark.slow
def test_a_sweep_serves_each_k(command: str, tmp_path: Path, url: str) -> None:
    """An A/A control and two draft lengths, each with the width that its server was given."""
    path = rollout(tmp_path, command, "{k}")
    rows = told("sweep", path, "--k", "0,1,3", "--collector", url)
    with Client(url) as client:
        stored = {
            k: list(client.generations(f"gguf-k{k}-c1", arm=Arm.CANDIDATE)) for k in (0, 1, 3)
        }
    assert [(row["rollout"], row["failed"]) for row in rows] == [
        (f"gguf-k{k}-c1", 0) for k in (0, 1, 3)
    ]
    assert rows[0]["acceptance_rate"] is None
    assert all(0 < row["acceptance_rate"] <= 1 for row in rows[1:])
    for k in (1, 3):
        for one in stored[k]:
            said = one.speculation
            assert 0 < said.draft_tokens <= k * said.steps
    assert servers(command) == []


@pytest.mark.slow
def test_the_greatest_rate_is_searched_on_a_real_engine(
    command: str, tmp_path: Path, url: str
) -> None:
    """Arrivals at both arms of llama.cpp at once: bounds that any answer keeps hold every rate.

    Bounds that none keeps hold no rate, and the search ends at the lowest.
    """
    path = rollout(tmp_path, command, "3")
    found = {}
    for name, bound_ms in (("wide", 600_000), ("narrow", 0.001)):
        text = SEARCHED.format(name=name, bound_ms=bound_ms)
        (tmp_path / f"{name}.yaml").write_text(text)
        changed(
            path,
            rollout=f"gguf-{name}",
            policy=f"{name}.yaml",
            load={"max_prompts": 30, "warmup": 1},
            sampling={"max_tokens": 8},
        )
        found[name] = told("sweep", path, "--rates", "4,8", "--collector", url)
    assert [one["rate"] for one in found["wide"]["rates"]] == [4, 8]
    assert [one["rate"] for one in found["narrow"]["rates"]] == [4]
    for arm in Arm:
        assert found["wide"]["greatest"][arm] == {"holds": 8, "fails": None}
        assert found["narrow"]["greatest"][arm] == {"holds": None, "fails": 4}
    assert servers(command) == []


SEARCHED = """
version: 1
name: {name}
goodput: {{e2e_ms: {bound_ms}, share: 0.7}}
prove:
  - {{metric: goodput, stat: diff, min: -0.1, scope: pooled}}
"""
CAPACITY = """
version: 1
name: capacity
cohorts: {min_n: 1, input_tokens: [60]}
goodput: {e2e_ms: 60000}
prove:
  - {metric: goodput, stat: diff, min: -0.2, scope: pooled}
  - {metric: goodput, stat: diff, min: -0.9, scope: cohort}
report:
  - {metric: throughput, stat: mean_ratio, min: 1.00, scope: pooled}
"""


def judged_by(policy: str, path: Path, load: dict[str, int]) -> Path:
    """Return the rollout file, with this load and a policy of its own."""
    path.with_name("policy.yaml").write_text(policy)
    return changed(path, policy="policy.yaml", load=load)


@pytest.mark.slow
def test_capacity_is_judged_at_one_load(command: str, tmp_path: Path, url: str) -> None:
    """Each arm keeps two requests in flight; good requests and bands of input tokens are cells."""
    path = judged_by(
        CAPACITY,
        rollout(tmp_path, command, "3"),
        {"max_prompts": 40, "warmup": 1, "concurrency": 2},
    )
    assert told("run", path, "--collector", url)["failed"] == 0
    verdict = json.loads(invoke("gate", "gguf", "--collector", url, "--json").stdout)
    with Client(url) as client:
        in_flight = {one.concurrency for one in client.generations("gguf")}
    assert in_flight == {1, 2}
    cells = {(f["metric"], f["cohort"]): f for f in verdict["findings"]}
    bands = {cohort for _, cohort in cells if cohort and cohort.startswith("input_tokens:")}
    assert bands == {"input_tokens:0-59", "input_tokens:60+"}
    pooled = {one["arm"]: one for one in verdict["capacity"] if one["cohort"] is None}
    for arm in Arm:
        assert 1 < pooled[arm]["in_flight"] <= 2
        assert pooled[arm]["output_tokens_per_s"] > 0
    assert cells["throughput", None]["estimate"] > 0  # undecided if the loads were unlike
    assert cells["goodput", None]["n"] == 40
    assert servers(command) == []


UNSTEADY = ("client", "drift", "dependence")
"""Reasons of a cell whose times were disturbed by what else this machine did."""

POLICY = """
version: 1
name: own
launches: {min: 3}
prove:
  - {metric: tpot, stat: geomean_ratio, max: 100, scope: pooled}
"""


@pytest.mark.slow
def test_three_launches_are_judged_over_launches(command: str, tmp_path: Path, url: str) -> None:
    """Servers start three times an arm; times hold over launches, and each launch is shown."""
    path = judged_by(
        POLICY, rollout(tmp_path, command, "3"), {"max_prompts": 45, "warmup": 1, "launches": 3}
    )
    assert told("run", path, "--collector", url)["failed"] == 0
    judged = invoke("gate", "gguf", "--collector", url, "--json")
    with Client(url) as client:
        stored = list(client.generations("gguf"))
    verdict = json.loads(judged.stdout)
    assert verdict["launches"] == {
        "baseline": 3,
        "candidate": 3,
        "independent": 3,
        "holds_over_launches": True,
    }
    (tpot,) = verdict["findings"]
    assert (len(tpot["launches"]), "in 3 launches from" in tpot["message"]) == (3, True)
    assert tpot["reason"] in (None, *UNSTEADY)
    pairs = {(one.prompt_id, one.arm): one.launch for one in stored}
    partners = {(pairs[p, Arm.BASELINE], pairs[p, Arm.CANDIDATE]) for p, _ in pairs}
    assert (len(stored), len(partners)) == (90, 3)
    assert servers(command) == []


@pytest.mark.slow
def test_a_sweep_launches_each_configuration_anew(command: str, tmp_path: Path, url: str) -> None:
    """Two launches of each k, none of them shared."""
    path = rollout(tmp_path, command, "{k}")
    changed(path, load={"max_prompts": 3, "warmup": 0, "launches": 2})
    told("sweep", path, "--k", "1,3", "--collector", url)
    with Client(url) as client:
        launched = [{one.launch for one in client.generations(f"gguf-k{k}-c1")} for k in (1, 3)]
    assert [len(names) for names in launched] == [4, 4]
    assert not launched[0] & launched[1]
    assert servers(command) == []


@pytest.mark.slow
def test_another_quantisation_is_checked_run_and_judged(
    command: str, tmp_path: Path, url: str
) -> None:
    """The arms differ in it alone, its policy needs no drafts, the verdict names the change."""
    path = rollout(tmp_path, command, "3")
    baseline = yaml.safe_load(path.read_text())["baseline"]
    quantised = baseline["start"].replace("/target.gguf", "/target-q8.gguf")
    candidate = baseline | {"start": quantised}
    changed(path, candidate=candidate, load={"max_prompts": 40, "warmup": 1})
    refused = json.loads(invoke("check", path, "--json").stdout)["findings"]
    assert {"quantization": "error"}.items() <= {f["check"]: f["severity"] for f in refused}.items()
    changed(path, change="quantization")
    checked = invoke("check", path, "--json")
    assert checked.exit_code == 0, checked.stdout
    found = invoke("run", path, "--collector", url, "--json")
    assert (found.exit_code, json.loads(found.stdout)["failed"]) == (0, 0), found.stderr
    assert "policy quality" in " ".join(found.stderr.split())
    scored = invoke("evaluate", "gguf", "--collector", url)
    assert scored.exit_code == 0, scored.stdout
    verdict = json.loads(invoke("gate", "gguf", "--collector", url, "--json").stdout)
    assert (verdict["change"], verdict["policy_name"], verdict["pairs"]) == (
        "quantization",
        "quality",
        40,
    )
    assert "treatment" not in {finding["reason"] for finding in verdict["findings"]}
    assert not [line for line in verdict["not_judged"] if "speculat" in line]
    assert verdict["divergence"][0]["compared"] == 40
    assert servers(command) == []
