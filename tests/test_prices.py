"""Prices in a rollout file, from the run to the verdict, its bundle and the metrics."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from demo.collector_process import running

PROMPTS = 110
POLICY = """
version: 1
name: cheap
prove:
  - {metric: cost_per_1k_output_tokens, stat: mean_ratio, max: 100, scope: pooled}
"""


def draftgate(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "draftgate", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def rollout_file(random_pair: dict[str, Path], tmp_path: Path) -> Path:
    """Write a rollout file that works, with the price of an hour of each route."""
    prompts = [
        {"id": f"p{i}", "cohort": "rag", "prompt": f"the order {i} was shipped"}
        for i in range(PROMPTS)
    ]
    (tmp_path / "prompts.jsonl").write_text("\n".join(map(json.dumps, prompts)))
    (tmp_path / "cheap.yaml").write_text(POLICY)
    route = {"engine": "transformers", "model": str(random_pair["target"])}
    document = {
        "rollout": "r",
        "workload": "prompts.jsonl",
        "policy": "cheap.yaml",
        "baseline": route,
        "candidate": route | {"draft_model": str(random_pair["draft"])},
        "sampling": {"max_tokens": 6},
        "prices": {
            "currency": "EUR",
            "baseline": {"per_accelerator_hour": 2.0, "accelerators": 2},
            "candidate": {"per_accelerator_hour": 2.5},
        },
    }
    file = tmp_path / "rollout.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_prices_of_a_rollout_file_become_money_in_its_verdict(
    rollout_file: Path, tmp_path: Path
) -> None:
    """Cost by arm with limits, on the terminal and in JSON; the bundle derives it again."""
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        done = draftgate("run", str(rollout_file), "--collector", url)
        assert done.returncode == 0, done.stderr
        bundle = tmp_path / "bundle.zip"
        judge = ("gate", "r", "--collector", url)
        judged = draftgate(*judge, "--json", "--bundle", str(bundle))
        verdict = json.loads(judged.stdout)
        printed = " ".join(draftgate(*judge).stdout.split())
        metrics = httpx.get(f"{url}/metrics").text
    pool, rag = verdict["costs"]
    assert (pool["cohort"], rag["cohort"], pool["currency"]) == (None, "rag", "EUR")
    assert (pool["n"], pool["left_out"], pool["in_flight"]) == (PROMPTS, 0, 1.0)
    assert pool["lower"] < pool["difference"] < pool["upper"]
    # Each number is rounded to eight significant digits.
    rounding = 1e-7 * max(pool["candidate"], pool["baseline"])
    apart = pool["candidate"] - pool["baseline"]
    assert pool["difference"] == pytest.approx(apart, abs=rounding)
    (finding,) = verdict["findings"]
    assert finding["estimate"] == pytest.approx(pool["candidate"] / pool["baseline"])
    assert "Cost in EUR per million output tokens, with 1 request in flight per route" in printed
    labels = 'arm="candidate",cohort="",currency="EUR",rollout="r"'
    assert f"draftgate_rollout_cost_per_million_output_tokens{{{labels}}}" in metrics
    verified = draftgate("verify", str(bundle))
    assert verified.returncode == 0, verified.stdout + verified.stderr
