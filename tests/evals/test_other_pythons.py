"""A bundle written here is judged the same, byte for byte, by other Pythons and processors."""

import json
import subprocess
import zipfile
from pathlib import Path

import arm64_machine
import pytest
import python_environments

from benchmarks.gate_speed import table
from evals import bundle, policy

EVERY_CELL = """
version: 1
name: every-cell
design: DESIGN
dependence: {stretch: 2}
prices: {baseline_per_hour: 2.0, candidate_per_hour: 2.5}
prove:
"""
CELLS = [
    *(
        f"{metric}, stat: {stat}, max: 1.1"
        for metric in ("ttft", "tpot", "e2e")
        for stat in ("geomean_ratio", "p50_ratio", "p95_ratio", "p99_ratio")
    ),
    "task_completion, stat: diff, min: -0.05",
    "groundedness, stat: mean_diff, min: -0.05",
    "schema_validity, stat: diff, min: -0.02",
    "failures, stat: diff, max: 0.02",
    "output_tokens, stat: mean_ratio, max: 1.1",
    "output_tokens, stat: geomean_ratio, max: 1.1",
    "cost_per_1k_output_tokens, stat: mean_ratio, max: 1.2",
]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return bundles with every kind of cell in pairs and in split traffic, and the default's."""
    folder = tmp_path_factory.mktemp("bundles")
    rules = "\n".join(
        f"  - {{metric: {cell}, scope: {scope}}}"
        for cell in CELLS
        for scope in ("pooled", "cohort")
    )
    texts = {d: EVERY_CELL.replace("DESIGN", d) + rules for d in ("paired_replay", "split")}
    written = []
    for number, (name, text) in enumerate(
        (texts | {"all": policy.shipped_text("default")}).items()
    ):
        control = None if name == "all" else table(1200, 4, 7)
        inputs = bundle.Inputs("k4", text, table(3000, 4, number), control)
        written.append(folder / f"{name}.zip")
        bundle.write(written[-1], inputs, bundle.judge(inputs, name))
    return written


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", python_environments.VERSIONS)
def test_another_python_gives_the_same_verdict(version: str, bundles: list[Path]) -> None:
    """By the installed command, without torch, with another numpy and scipy."""
    interpreter = python_environments.others().get(version)
    if interpreter is None:
        pytest.skip(f"no other Python {version} on the PATH or under pyenv")
    python = python_environments.with_draftgate(version, interpreter)
    for path in bundles:
        judged_the_same([str(python.with_name("draftgate")), "verify", str(path)], path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_another_processor_gives_the_same_verdict(bundles: list[Path]) -> None:
    """By an emulated 64-bit ARM machine, whose libraries add and find roots in other ways."""
    missing = arm64_machine.missing()
    if missing is not None:
        pytest.skip(missing)
    for path in bundles[:2]:  # those with every kind of cell
        judged_the_same(arm64_machine.command("verify", str(path)), path)


def judged_the_same(command: list[str], path: Path) -> None:
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path}: the same verdict, byte for byte\n"


@pytest.mark.slow
def test_the_bundles_hold_what_could_differ(bundles: list[Path]) -> None:
    """Nearly every cell has limits and a p value: numbers in which libraries could differ."""
    for path in bundles:
        with zipfile.ZipFile(path) as archive:
            findings = json.loads(archive.read("verdict.json"))["findings"]
        measured = [f for f in findings if f["p_fail"] is not None and f["lower"] is not None]
        # At a stretch of 2 the p99 of 750 pairs has no lower limit: 12 of 95 cells.
        assert len(measured) >= 83 / 95 * len(findings) > 10
