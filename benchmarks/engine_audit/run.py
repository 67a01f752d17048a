"""Run one cell with Draftgate itself: run, evaluate, gate, verify."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.engine_audit import product, routes
from benchmarks.engine_audit.cells import DECODINGS, REAL, Cell
from benchmarks.engine_audit.environments import python_of
from benchmarks.engine_audit.models import Pair
from benchmarks.engine_audit.results import DIED, Result, of_verdict
from benchmarks.engine_audit.servers import Servers
from collector.contract import Arm
from demo.real.story import WORKLOAD as REAL_WORKLOAD
from demo.story import WORKLOAD
from engine_adapter.errors import EngineSetupError
from engine_adapter.run.rollout_file import SHIPPED_WORKLOADS

POLICY: Final = Path(__file__).parent / "policy.yaml"
_INTERRUPTED: Final = 130
_MAX_TOKENS: Final = 64
_STRUCTURED_TOKENS: Final = 96


def run(cell: Cell, folder: Path, models: Pair, servers: Servers, collector: str) -> Result:
    """Run a cell in its folder; an interrupted one goes on where it was."""
    if cell.unavailable:
        return Result(cell=cell, not_run=cell.unavailable)
    folder.mkdir(parents=True, exist_ok=True)
    started_s, log = time.monotonic(), folder / "log.txt"
    try:
        python = python_of(cell.engine, cell.release, cell.patch)
        arms = _arms(cell, models, servers, python)
    except (RuntimeError, EngineSetupError) as exc:
        return Result(cell=cell, not_run=f"does not start: {str(exc)[-300:]}")
    file = _rollout_file(cell, folder, arms, collector)
    if cell.engine == "transformers":
        ran = product.command_of(python, log, "run", str(file))
    else:
        ran = product.command(log, "run", str(file))
    if ran == _INTERRUPTED:
        raise KeyboardInterrupt
    died = not servers.alive(Arm.CANDIDATE)
    if ran not in (0, 1):
        return Result(cell=cell, not_run=DIED if died else _last_line(log))
    return _judged(cell, folder, models, collector, started_s=started_s, died=died)


def judge(cell: Cell, folder: Path, models: Pair, collector: str, before: Result) -> Result:
    """Judge a cell's stored answers again."""
    again = _judged(cell, folder, models, collector, started_s=time.monotonic(), died=False)
    died = {DIED} & {*before.faults}
    return replace(again, seconds=before.seconds, faults=(*again.faults, *died))


def _judged(
    cell: Cell, folder: Path, models: Pair, collector: str, *, started_s: float, died: bool
) -> Result:
    log, bundle, verdict = folder / "log.txt", folder / "bundle.zip", folder / "verdict.json"
    at = ["--collector", collector]
    product.command(log, "evaluate", cell.name, *at)
    gated = product.command(
        log, "gate", cell.name, *at, "--policy", str(POLICY), "--rescore", str(models.rescored),
        "--bundle", str(bundle), "--write", f"json={verdict}", *_draft_of(cell, models),
    )  # fmt: skip
    if gated == 2:  # unusable
        return Result(cell=cell, not_run=_last_line(log))
    return of_verdict(
        cell,
        json.loads(verdict.read_text()),
        verified=product.command(log, "verify", str(bundle)) == 0,
        seconds=round(time.monotonic() - started_s, 1),
        died=died,
    )


def _draft_of(cell: Cell, models: Pair) -> list[str]:
    if cell.model != REAL or cell.method != "draft_model":
        return []
    return ["--rescore-draft", str(models.draft)]


def _arms(cell: Cell, models: Pair, servers: Servers, python: Path) -> dict[str, Any]:
    """Return both arms' routes; the baseline is never patched."""
    plain = python_of(cell.engine, cell.release) if cell.patch else python
    found = {}
    for arm, interpreter in ((Arm.BASELINE, plain), (Arm.CANDIDATE, python)):
        route = routes.route(cell, models, interpreter, speculates=arm is Arm.CANDIDATE)
        found[arm.value] = servers.route(arm, route, cell.name)
    return found


def _rollout_file(cell: Cell, folder: Path, arms: dict[str, Any], collector: str) -> Path:
    decoding, file = DECODINGS[cell.decoding], folder / "rollout.yaml"
    structured = decoding.workload != "demo"
    tokens = _STRUCTURED_TOKENS if structured else _MAX_TOKENS
    document = {
        "rollout": cell.name,
        "workload": str(_workload(cell, folder)),
        "policy": str(POLICY),
        **arms,
        "sampling": {"max_tokens": tokens, "seed": 7, **decoding.sampling},
        "load": {
            "concurrency": cell.in_flight,
            "warmup": 2,
            "max_prompts": cell.prompts,
        },
        "collector": {"url": collector},
    }
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return file


def _workload(cell: Cell, folder: Path) -> Path:
    """Return the demo's prompts, or write those of the cell without limits of their own."""
    cohort = DECODINGS[cell.decoding].workload
    if cohort == "demo" and cell.model != REAL:
        return WORKLOAD
    source = REAL_WORKLOAD if cohort == "demo" else SHIPPED_WORKLOADS / "structured.jsonl"
    prompts = [json.loads(line) for line in source.read_text().splitlines()]
    if cohort == "demo":
        kept = [{name: one[name] for name in ("id", "cohort", "messages")} for one in prompts]
    else:
        kept = [one for one in prompts if one["cohort"] == cohort]
    file = folder / "prompts.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in kept))
    return file


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text().splitlines() if line.startswith("error")]
    return (lines or ["it said nothing"])[-1][:300]
