"""The whole job against a collector that needs keys and has a certificate of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import yaml

DRAFTGATE = [sys.executable, "-m", "draftgate"]
PROMPTS = [
    {"id": f"p{i}", "cohort": "rag", "prompt": "the order was shipped", "context": ["on monday"]}
    for i in range(2)
]


def draftgate(env: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*DRAFTGATE, *arguments], capture_output=True, text=True, check=False, env=os.environ | env
    )


def make_key(database: str, *scopes: str) -> str:
    options = [option for scope in scopes for option in ("--scope", scope)]
    done = draftgate({}, "keys", "create", "team", *options, "--database", database)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def rollout_file(random_pair: dict[str, Path], tmp_path: Path) -> Path:
    """Write a rollout file that works, but for its collector."""
    (tmp_path / "prompts.jsonl").write_text("\n".join(map(json.dumps, PROMPTS)))
    route = {"engine": "transformers", "model": str(random_pair["target"])}
    document = {
        "rollout": "r",
        "workload": "prompts.jsonl",
        "baseline": route,
        "candidate": route | {"draft_model": str(random_pair["draft"])},
        "sampling": {"max_tokens": 4},
        "load": {"warmup": 0},
    }
    file = tmp_path / "rollout.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_run_evaluate_gate_and_dashboard_work_with_a_key(
    rollout_file: Path, tmp_path: Path, free_port: Callable[[], int]
) -> None:
    """One environment variable opens every command; without it each names the missing key."""
    database = f"sqlite:///{tmp_path / 'team.db'}"
    ingest, whole = (
        make_key(database, "ingest"),
        make_key(database, "ingest", "read", "content", "judge"),
    )
    serve = [*DRAFTGATE, "serve", "--port", "0", "--require-keys", "--database", database]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().split()[-1].removesuffix("/v1/traces")
            run = ("run", str(rollout_file), "--collector", url)
            at = ("r", "--collector", url)
            refused = draftgate({"DRAFTGATE_API_KEY": ""}, *run)
            assert refused.returncode == 2
            said = " ".join(refused.stderr.split())
            assert "refused (401): no API key" in said
            assert "scope ingest into DRAFTGATE_API_KEY" in said
            done = draftgate({"DRAFTGATE_API_KEY": ingest}, *run)
            assert done.returncode == 0, done.stderr
            standard = {"OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{ingest}"}
            assert draftgate(standard, *run, "--fresh").returncode == 0
            denied = draftgate({"DRAFTGATE_API_KEY": ingest}, "evaluate", *at)
            assert denied.returncode == 2
            assert "lacks the scope read" in denied.stderr
            key = {"DRAFTGATE_API_KEY": whole}
            scored = draftgate(key, "evaluate", *at)
            assert scored.returncode == 0, scored.stderr
            assert (
                "8 of 8 answers have no text to judge: the collector does not keep content; "
                in (scored.stderr)
            )
            judged = draftgate(key, "gate", *at)
            assert judged.returncode == 3, judged.stderr
            check_dashboard(url, key, free_port())
        finally:
            process.terminate()


def check_dashboard(url: str, env: dict[str, str], port: int) -> None:
    """Check that the dashboard's process reads the key and that the page answers."""
    command = [*DRAFTGATE, "dashboard", "--collector", url, "--port", str(port)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | env
    ) as process:
        assert process.stderr is not None
        try:
            assert f"Dashboard of {url}" in process.stderr.readline()
            assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 200
        finally:
            process.terminate()
