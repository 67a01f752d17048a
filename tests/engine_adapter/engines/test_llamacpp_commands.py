"""`draftgate check`, `run` and `sweep` as a user has them, over llama.cpp's own server."""

import json
import sys
from pathlib import Path
from typing import Any

import gguf_model
import llamacpp_server
import psutil
import pytest
import yaml
from twenty_prompts import MODELS, ROOT
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Arm
from demo.collector_process import running
from draftgate.commands import app


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the command that serves the demo's target, with its draft at the end."""
    folder = tmp_path_factory.mktemp("gguf")
    for name in ("target", "draft"):
        gguf_model.write(MODELS / name, folder / f"{name}.gguf")
    gguf_model.write(MODELS / "target", folder / "target-q8.gguf", quantised=True)
    program = f"{sys.executable} {llamacpp_server.PROGRAM} {folder}/target.gguf --port {{port}}"
    return f"{program} --draft {folder}/draft.gguf"


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
    path = folder / "rollout.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments])


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
    found = invoke("check", str(rollout(tmp_path, command, "3")), "--json")
    findings = json.loads(found.stdout)["findings"]
    assert found.exit_code == 0, findings
    assert "candidate_does_not_speculate" not in {one["check"] for one in findings}
    swapped = yaml.safe_load((tmp_path / "rollout.yaml").read_text())
    swapped["candidate"] = swapped["baseline"]
    (tmp_path / "rollout.yaml").write_text(yaml.safe_dump(swapped))
    plain = json.loads(invoke("check", str(tmp_path / "rollout.yaml"), "--json").stdout)
    assert {"candidate_does_not_speculate"} <= {one["check"] for one in plain["findings"]}
    assert servers(command) == []


@pytest.mark.slow
def test_run_starts_both_and_stops_them(command: str, tmp_path: Path) -> None:
    """Both arms are stored, with counts on the candidate; the file runs again at other ports."""
    path = rollout(tmp_path, command, "3")
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        first = invoke("run", str(path), "--collector", url, "--json")
        assert first.exit_code == 0, first.stderr
        again = json.loads(invoke("run", str(path), "--collector", url, "--json").stdout)
        with Client(url) as client:
            stored = list(client.generations("gguf"))
    assert (json.loads(first.stdout)["failed"], again["resumed"]) == (0, 6)
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
) -> None:
    """Its defaults count, in its order; each token is the one that the request's seed gives.

    Top-p .95 before the temperature leaves this target one token at nearly every place: no pass.
    """
    path = rollout(tmp_path, command, "3")
    document = yaml.safe_load(path.read_text())
    document["sampling"] = {"temperature": 3, "max_tokens": 48} | sampling
    document["load"] = {"max_prompts": 80, "warmup": 0}
    path.write_text(yaml.safe_dump(document))
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        assert invoke("run", str(path), "--collector", url).exit_code == 0
        audit = ["audit", "gguf", "--rescore", str(MODELS / "target"), "--json"]
        told = json.loads(invoke(*audit, "--collector", url).stdout)
        with Client(url) as client:
            stored = [one for one in client.generations("gguf") if one.sentinel is None]
            samplers = {one.sampler for one in stored}
    assert samplers == {sampler}
    assert told["tokens"] >= told["seeded"]["tokens"] > 1000, told
    assert (told["outcome"], told["baseline"]["seeded"]["tokens"] > 1000) == (outcome, True), told
    assert words in told["message"]


@pytest.mark.slow
def test_run_ends_when_it_is_decided(command: str, tmp_path: Path) -> None:
    """Two engines that answer alike pass before the workload is used up, and exit like the gate."""
    path = rollout(tmp_path, command, "3")
    document = yaml.safe_load(path.read_text())
    document["load"] = {"warmup": 1}
    path.write_text(yaml.safe_dump(document))
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\nname: failures\nprove:\n"
        "  - {metric: failures, stat: diff, max: 0.05, scope: pooled}\n"
        "guard:\n  - {metric: task_completion, stat: diff, min: -0.10, scope: cohort}\n"
    )
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        options = ("--collector", url, "--policy", str(policy))
        found = invoke("run", str(path), *options, "--until-decided", "--budget", "10m", "--json")
        assert found.exit_code == 0, found.stderr
        judged = invoke("gate", "gguf", "--collector", url, "--strict", "--json")
        assert judged.exit_code == 0, judged.stderr
    verdict = json.loads(found.stdout)["verdict"]
    pool = verdict["looks"][0]
    assert pool["cohort"] is None
    assert pool["decided_at"] == pool["taken"] < len(pool["pairs"])
    assert verdict["pairs"] == pool["pairs"][pool["taken"] - 1] < pool["pairs"][-1] == 200
    assert json.loads(judged.stdout)["looks"] == verdict["looks"]
    assert servers(command) == []


@pytest.mark.slow
def test_candidates_are_compared_until_decided(command: str, tmp_path: Path) -> None:
    """Another model's answers end it at the first launch; the drafting arm goes on to its pass."""
    path = rollout(tmp_path, command, "3")
    document = yaml.safe_load(path.read_text())
    drafting = document.pop("candidate")
    other = drafting | {"start": document["baseline"]["start"].replace("target.gguf", "draft.gguf")}
    document["arms"] = {"k3": drafting, "other": other | {"change": "other"}}
    document["load"] = {"max_prompts": 120, "warmup": 1, "launches": 3}
    path.write_text(yaml.safe_dump(document))
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\nname: same\nlaunches: {min: 3}\nlossless: {}\n"
        "prove: [{metric: failures, stat: diff, max: 0.10, scope: pooled}]\n"
    )
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        options = ("--policy", str(policy), "--rescore", str(MODELS / "target"), "--until-decided")
        found = invoke("run", str(path), "--collector", url, *options, "--json")
        assert found.exit_code == 0, found.stderr
        with Client(url) as client:
            launches = {
                name: {one.launch for one in client.generations(f"gguf-{name}")}
                for name in document["arms"]
            }
    verdicts = json.loads(found.stdout)["family"]["verdicts"]
    assert {name: (v["outcome"], v["pairs"]) for name, v in verdicts.items()} == {
        "k3": ("pass", 80),
        "other": ("fail", 40),
    }
    assert {name: len(of) for name, of in launches.items()} == {"k3": 4, "other": 2}
    failed = [f["metric"] for f in verdicts["other"]["findings"] if f["outcome"] == "fail"]
    assert failed == ["greedy_divergence"]
    assert servers(command) == []


def test_run_refuses_a_k_that_only_a_sweep_knows(command: str, tmp_path: Path) -> None:
    """The message names the route and what to write."""
    file = str(rollout(tmp_path, command, "{k}"))
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        found = invoke("run", file, "--no-journal", "--collector", url)
    assert found.exit_code == 2
    assert "candidate: start holds {k}" in " ".join(found.stderr.split())


@pytest.mark.slow
def test_a_sweep_serves_each_k(command: str, tmp_path: Path) -> None:
    """An A/A control and two draft lengths, each with the width that its server was given."""
    path = rollout(tmp_path, command, "{k}")
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        found = invoke("sweep", str(path), "--k", "0,1,3", "--collector", url, "--json")
        assert found.exit_code == 0, found.stderr
        rows = json.loads(found.stdout)
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
def test_the_greatest_rate_is_searched_on_a_real_engine(command: str, tmp_path: Path) -> None:
    """Arrivals at both arms of llama.cpp at once: bounds that any answer keeps hold every rate.

    Bounds that none keeps hold no rate, and the search ends at the lowest.
    """
    path = rollout(tmp_path, command, "3")
    document = yaml.safe_load(path.read_text())
    document["load"] = {"max_prompts": 30, "warmup": 1}
    document["sampling"] = {"max_tokens": 8}
    found = {}
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        for name, bound_ms in (("wide", 600_000), ("narrow", 0.001)):
            text = SEARCHED.format(name=name, bound_ms=bound_ms)
            (tmp_path / f"{name}.yaml").write_text(text)
            of_policy = {"rollout": f"gguf-{name}", "policy": f"{name}.yaml"}
            path.write_text(yaml.safe_dump(document | of_policy))
            made = invoke("sweep", str(path), "--rates", "4,8", "--collector", url, "--json")
            assert made.exit_code == 0, made.stderr
            found[name] = json.loads(made.stdout)
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
    more = {"policy": "policy.yaml", "load": load}
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | more))
    path.with_name("policy.yaml").write_text(policy)
    return path


@pytest.mark.slow
def test_capacity_is_judged_at_one_load(command: str, tmp_path: Path) -> None:
    """Each arm keeps two requests in flight; good requests and bands of input tokens are cells."""
    path = judged_by(
        CAPACITY,
        rollout(tmp_path, command, "3"),
        {"max_prompts": 40, "warmup": 1, "concurrency": 2},
    )
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        found = invoke("run", str(path), "--collector", url, "--json")
        assert (found.exit_code, json.loads(found.stdout)["failed"]) == (0, 0), found.stderr
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


POLICY = """
version: 1
name: own
launches: {min: 3}
prove:
  - {metric: tpot, stat: geomean_ratio, max: 100, scope: pooled}
"""


@pytest.mark.slow
def test_three_launches_are_judged_over_launches(command: str, tmp_path: Path) -> None:
    """Servers start three times an arm; times hold over launches, and each launch is shown."""
    path = judged_by(
        POLICY, rollout(tmp_path, command, "3"), {"max_prompts": 45, "warmup": 1, "launches": 3}
    )
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        found = invoke("run", str(path), "--collector", url, "--json")
        assert (found.exit_code, json.loads(found.stdout)["failed"]) == (0, 0), found.stderr
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
    (tpot,) = verdict["findings"]  # undecided where this machine was too busy to read in time
    assert (len(tpot["launches"]), "in 3 launches from" in tpot["message"]) == (3, True)
    assert tpot["reason"] in (None, "client")
    pairs = {(one.prompt_id, one.arm): one.launch for one in stored}
    partners = {(pairs[p, Arm.BASELINE], pairs[p, Arm.CANDIDATE]) for p, _ in pairs}
    assert (len(stored), len(partners)) == (90, 3)
    assert servers(command) == []


@pytest.mark.slow
def test_a_sweep_launches_each_configuration_anew(command: str, tmp_path: Path) -> None:
    """Two launches of each k, none of them shared."""
    path = rollout(tmp_path, command, "{k}")
    document = yaml.safe_load(path.read_text())
    document["load"] |= {"launches": 2}
    path.write_text(yaml.safe_dump(document))
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        found = invoke("sweep", str(path), "--k", "1,3", "--collector", url, "--json")
        assert found.exit_code == 0, found.stderr
        with Client(url) as client:
            launched = [{one.launch for one in client.generations(f"gguf-k{k}-c1")} for k in (1, 3)]
    assert [len(names) for names in launched] == [4, 4]
    assert not launched[0] & launched[1]
    assert servers(command) == []


@pytest.mark.slow
def test_another_quantisation_is_checked_run_and_judged(command: str, tmp_path: Path) -> None:
    """The arms differ in it alone, its policy needs no drafts, the verdict names the change."""
    path = rollout(tmp_path, command, "3")
    document = yaml.safe_load(path.read_text())
    quantised = document["baseline"]["start"].replace("/target.gguf", "/target-q8.gguf")
    document["candidate"] = document["baseline"] | {"start": quantised}
    document["load"] = {"max_prompts": 40, "warmup": 1}
    path.write_text(yaml.safe_dump(document))
    refused = json.loads(invoke("check", str(path), "--json").stdout)["findings"]
    assert {"quantization": "error"}.items() <= {f["check"]: f["severity"] for f in refused}.items()
    path.write_text(yaml.safe_dump(document | {"change": "quantization"}))
    checked = invoke("check", str(path), "--json")
    assert checked.exit_code == 0, checked.stdout
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        found = invoke("run", str(path), "--collector", url, "--json")
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
