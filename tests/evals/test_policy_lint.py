"""`draftgate policy lint`: a policy file's errors, with their lines."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from evals import policy as policies

ROOT = Path(__file__).parents[2]
GOOD = """\
version: 1
name: ours
alpha: {pass: 0.05}
prove:
  - metric: e2e
    stat: geomean_ratio
    max: 1.0
    scope: pooled
guard:
  - {metric: failures, stat: diff, max: 0.01, scope: pooled}
"""


def lint(*files: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "draftgate", "policy", "lint", *map(str, files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("was", "is_", "line", "words"),
    [
        ("max: 1.0", "max: much", 7, "prove[0].max: wanted a number, got 'much'"),
        ("max: 1.0", "maxi: 1.0", 7, "prove[0].maxi: unknown key; did you mean max?"),
        ("    stat: geomean_ratio\n", "", 5, "prove[0].stat: missing key"),
        ("max: 0.01", "max: 7", 10, "guard[0].max: wanted a difference of shares from 0 to 1"),
        ("{pass: 0.05}", "{pass: 0.5}", 3, "alpha.pass: wanted a level above 0 and at most 0.2"),
        ("name: ours", "version: 2", 2, "column 1: the key 'version' stands twice"),
        ("{pass: 0.05}", "{pass: 0.05", 4, "column "),
        ("name: ours\n", "", None, "name: missing key"),
        ("prove:", "report:", None, "prove: wanted at least one rule"),
        (GOOD, "", None, "wanted a mapping of keys, got None"),
        (GOOD, "- 1\n", None, "wanted a mapping of keys, got [1]"),
    ],
)
def test_a_problem_has_its_line(
    tmp_path: Path, was: str, is_: str, line: int | None, words: str
) -> None:
    """And its key; the other file is checked all the same."""
    bad, good = tmp_path / "bad.yaml", tmp_path / "good.yaml"
    assert was in GOOD
    bad.write_text(GOOD.replace(was, is_, 1))
    good.write_text(GOOD)
    done = lint(bad, good)
    assert done.returncode == 2
    where = f"{bad}:" if line is None else f"{bad}:{line}:"
    assert done.stderr.startswith(f"error: {where} {words}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == f"{good}: usable, hash {policies.load(good).policy_hash[:12]}\n"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing one, and one that is no text."""
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    done = lint(tmp_path / "none.yaml", binary)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("cannot be read") == 2


def test_shipped_policies_are_usable() -> None:
    """As the hook calls it, and by the names of files that the hook looks at."""
    files = sorted((ROOT / "evals" / "policies").glob("*.yaml"))
    done = lint(*files)
    assert (done.returncode, done.stderr) == (0, "")
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "draftgate policy lint"
    looked_at = ("policy.yaml", "a/policy.yml", "release-policy.yaml", "policy-strict.yaml")
    others = ("policy.json", "rollout.yaml", "policyholder.yaml")
    assert [name for name in (*looked_at, *others) if re.search(hook["files"], name)] == [
        *looked_at
    ]
