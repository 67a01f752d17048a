"""A rollout file with its workload, and `draftgate` in this process or in another."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner, Result
from waiting import until

from draftgate.commands import app


def written(
    folder: Path, document: Mapping[str, Any], prompts: Iterable[Mapping[str, Any]] = ()
) -> Path:
    """Write `rollout.yaml`, named `r` unless it says otherwise, and its prompts, if any."""
    lines = [json.dumps(one) for one in prompts]
    if lines:
        (folder / "prompts.jsonl").write_text("\n".join(lines))
    path = folder / "rollout.yaml"
    whole = {"rollout": "r", "workload": "prompts.jsonl", **document}
    path.write_text(yaml.safe_dump(whole, sort_keys=False))
    return path


def tasks(folder: Path, each: int, policy: str, **document: Any) -> Path:
    """Write a rollout file, its policy, and prompts whose right answer is `yes`, of two cohorts."""
    (folder / "policy.yaml").write_text(policy)
    prompts = (
        {"id": f"{cohort}-{i}", "cohort": cohort, "prompt": str(i), "reference": "yes"}
        for cohort in ("chat", "code")
        for i in range(each)
    )
    return written(folder, {"policy": "policy.yaml"} | document, prompts)


def changed(path: Path, **keys: Any) -> Path:
    """Replace keys of a rollout file."""
    return written(path.parent, yaml.safe_load(path.read_text()) | keys)


def run_command(path: Path, *options: str) -> list[str]:
    """Return the command line of a run in a process of its own."""
    return [sys.executable, "-m", "draftgate", "run", str(path), "--json", *options]


@contextmanager
def begun(path: Path, *options: str, stored: int) -> Iterator["subprocess.Popen[str]"]:
    """Run in a process, and give it once so many generations are in the journal."""
    journal = path.with_name(f"{path.name}.journal")
    process = subprocess.Popen(
        run_command(path, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        until(lambda: journal.exists() and len(journal.read_text().splitlines()) > stored)
        yield process
    finally:
        process.kill()
        process.communicate()


def invoke(*arguments: object) -> Result:
    """Run a command of `draftgate`."""
    return CliRunner().invoke(app, list(map(str, arguments)))


def told(*arguments: object) -> Any:
    """Run a command that succeeds; return the JSON that it prints."""
    done = invoke(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)
