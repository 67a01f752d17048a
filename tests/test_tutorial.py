"""The tutorial, copied and run: vLLM's own servers, start to verdict."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import vllm_server

from demo.collector_process import running

pytestmark = [pytest.mark.slow, pytest.mark.vllm, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parent.parent
PROMPTS = 16
DRAFT = {
    "method": "draft_model",
    "model": str(ROOT / "demo" / "models" / "draft"),
    "num_speculative_tokens": 4,
}


def commands_from(step: int) -> str:
    """Return the shell blocks of the tutorial's steps from one on."""
    page = (ROOT / "docs" / "tutorial.md").read_text()
    steps = page.split(f"**{step}. ")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"```sh\n(.*?)```", steps, re.S))


def test_the_tutorial_ends_in_a_verdict(tmp_path: Path) -> None:
    """Its files and commands, over other servers and prompts, judge every pair."""
    workload = (ROOT / "demo" / "workload.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "prompts.jsonl").write_text("".join(workload[:PROMPTS]))
    target = ROOT / "demo" / "models" / "target"
    with (
        running(tmp_path / "d.db", tmp_path / "log") as collector,
        vllm_server.serving(target) as baseline,
        vllm_server.serving(target, speculation=DRAFT) as candidate,
    ):
        script = commands_from(5)
        for written, here in (
            ("http://localhost:8000", baseline),
            ("http://localhost:8001", candidate),
            ("http://localhost:4318", collector),
            ("Qwen/Qwen3-8B", "served"),
        ):
            assert written in script
            script = script.replace(written, here)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-ec", script],
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    assert f"{PROMPTS} pairs, 0 incomplete, 0 failed" in done.stdout
