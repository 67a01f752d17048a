"""An upgrade of a real engine, judged: two releases of llama.cpp, each in an environment."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import engine_environments
import gguf_model
import pytest
import yaml
from twenty_prompts import MODELS, ROOT
from typer.testing import CliRunner

from collector.contract import LATENCIES
from demo.collector_process import running
from draftgate.commands import app

pytestmark = pytest.mark.slow
PROMPTS = 40
PROGRAM = ROOT / "benchmarks" / "engine_audit" / "llamacpp_release.py"


@pytest.fixture(scope="module")
def older() -> Path:
    """Return the interpreter that has the older release; skip without, but fail in CI."""
    python = engine_environments.python_of("llamacpp_older")
    if python is None:
        missing = "an older llama.cpp is not installed (`make engines`)"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return python


@pytest.fixture
def document(older: Path, tmp_path: Path) -> dict[str, Any]:
    """Return a rollout from the older release to the one that the tests have; none drafts."""
    gguf_model.write(MODELS / "target", tmp_path / "target.gguf")
    route = {"engine": "llamacpp", "model": "served", "url": "http://127.0.0.1:{port}/v1"}
    serve = f"{PROGRAM} {tmp_path}/target.gguf --port {{port}}"
    return {
        "rollout": "upgrade",
        "workload": str(ROOT / "demo" / "workload.jsonl"),
        "baseline": route | {"start": f"{older} {serve}"},
        "candidate": route | {"start": f"{sys.executable} {serve}"},
        "sampling": {"max_tokens": 24},
        "load": {"max_prompts": PROMPTS, "warmup": 1},
    }


def command(*words: str) -> Any:
    return CliRunner().invoke(app, [*words])


def written(document: dict[str, Any], folder: Path) -> str:
    path = folder / "rollout.yaml"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def severities(path: str) -> dict[str, str]:
    found = json.loads(command("check", path, "--json").stdout)["findings"]
    return {one["check"]: one["severity"] for one in found}


def test_versions_that_nobody_tells_are_no_equal_versions(
    document: dict[str, Any], tmp_path: Path
) -> None:
    """These binaries were built without their version: the upgrade is not denied, nor confirmed."""
    found = severities(written(document | {"change": "engine_upgrade"}, tmp_path))
    assert found["change_unseen"] == "note"
    assert "error" not in found.values()


def test_an_upgrade_is_run_and_judged(document: dict[str, Any], tmp_path: Path) -> None:
    """The verdict names the change and needs no drafts; both releases give the same answers."""
    path = written(document | {"change": "engine_upgrade"}, tmp_path)
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        ran = command("run", path, "--collector", url, "--json")
        assert (ran.exit_code, json.loads(ran.stdout)["failed"]) == (0, 0), ran.stderr
        scored = command("evaluate", "upgrade", "--collector", url)
        assert scored.exit_code == 0, scored.stdout
        verdict = json.loads(command("gate", "upgrade", "--collector", url, "--json").stdout)
    assert (verdict["change"], verdict["policy_name"]) == ("engine_upgrade", "quality")
    assert verdict["pairs"] == PROMPTS
    assert {"treatment", "mismatch"}.isdisjoint({f["reason"] for f in verdict["findings"]})
    # Which release is the faster one is no matter of correctness.
    failed = {f["metric"] for f in verdict["findings"] if f["outcome"] == "fail"}
    assert failed <= {*LATENCIES}
    assert (
        verdict["divergence"][0] | {"compared": PROMPTS, "diverged": 0} == verdict["divergence"][0]
    )
