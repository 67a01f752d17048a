"""An upgrade of a real engine, judged: two releases of llama.cpp, each in an environment."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import engine_environments
import pytest
from rollout_files import invoke, told, written
from twenty_prompts import ROOT

from collector.contract import LATENCIES

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
def document(older: Path, gguf_pair: dict[str, Path]) -> dict[str, Any]:
    """Return a rollout from the older release to the one that the tests have; none drafts."""
    route = {"engine": "llamacpp", "model": "served", "url": "http://127.0.0.1:{port}/v1"}
    serve = f"{PROGRAM} {gguf_pair['target']} --port {{port}}"
    return {
        "rollout": "upgrade",
        "workload": str(ROOT / "demo" / "workload.jsonl"),
        "baseline": route | {"start": f"{older} {serve}"},
        "candidate": route | {"start": f"{sys.executable} {serve}"},
        "sampling": {"max_tokens": 24},
        "load": {"max_prompts": PROMPTS, "warmup": 1},
    }


def severities(path: Path) -> dict[str, str]:
    found = json.loads(invoke("check", path, "--json").stdout)["findings"]
    return {one["check"]: one["severity"] for one in found}


def test_versions_that_nobody_tells_are_no_equal_versions(
    document: dict[str, Any], tmp_path: Path
) -> None:
    """These binaries were built without their version: the upgrade is not denied, nor confirmed."""
    found = severities(written(tmp_path, document | {"change": "engine_upgrade"}))
    assert found["change_unseen"] == "note"
    assert "error" not in found.values()


def test_an_upgrade_is_run_and_judged(document: dict[str, Any], tmp_path: Path, url: str) -> None:
    """The verdict names the change and needs no drafts; both releases give the same answers."""
    path = written(tmp_path, document | {"change": "engine_upgrade"})
    assert told("run", path, "--collector", url)["failed"] == 0
    scored = invoke("evaluate", "upgrade", "--collector", url)
    assert scored.exit_code == 0, scored.stdout
    verdict = json.loads(invoke("gate", "upgrade", "--collector", url, "--json").stdout)
    assert (verdict["change"], verdict["policy_name"]) == ("engine_upgrade", "quality")
    assert verdict["pairs"] == PROMPTS
    assert {"treatment", "mismatch"}.isdisjoint({f["reason"] for f in verdict["findings"]})
    # Which release is the faster one is no matter of correctness.
    failed = {f["metric"] for f in verdict["findings"] if f["outcome"] == "fail"}
    assert failed <= {*LATENCIES}
    assert (
        verdict["divergence"][0] | {"compared": PROMPTS, "diverged": 0} == verdict["divergence"][0]
    )
