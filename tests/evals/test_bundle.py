"""A verdict's bundle: its contents, and the verdict of judging it again."""

import hashlib
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from draftgate.commands import app
from evals import bundle
from evals.errors import BundleError
from evals.stats.significant import significant

POLICY = """
version: 1
name: small
dependence: {stretch: 2}
prove:
  - {metric: e2e, stat: geomean_ratio, max: 1.00, scope: pooled}
  - {metric: e2e, stat: p95_ratio, max: 1.25, scope: pooled}
  - {metric: task_completion, stat: diff, min: -0.10, scope: cohort}
"""


@pytest.fixture
def inputs_of(table_of, side) -> Callable[..., bundle.Inputs]:
    """Give 120 pairs of a faster candidate, and a control that is the same or none."""

    def make(*, control: bool = False) -> bundle.Inputs:
        rng = np.random.default_rng(3)
        rows = []
        for i in range(120):
            seconds = rng.lognormal(0, 0.3)
            rows.append(
                {
                    "prompt_id": f"p{i:03}",
                    "cohort": "chat",
                    "baseline": side(e2e_s=seconds, score_task_completion=1.0),
                    "candidate": side(
                        e2e_s=seconds * 0.6 * rng.lognormal(0, 0.1), score_task_completion=1.0
                    ),
                }
            )
        table = table_of(rows)
        return bundle.Inputs("k4", POLICY, table, table if control else None)

    return make


@pytest.fixture
def written(tmp_path: Path, inputs_of) -> Callable[..., Path]:
    """Give a function that writes a bundle."""

    def write(**kwargs: bool) -> Path:
        path, inputs = tmp_path / "k4.zip", inputs_of(**kwargs)
        bundle.write(path, inputs, bundle.judge(inputs, "policy.yaml"))
        return path

    return write


def rewrite(path: Path, *, honest: bool, **changed: bytes) -> Path:
    """Replace files of a bundle; an honest forger mends the manifest too."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for name, data in changed.items():
        files[name.replace("_", ".")] = data
    if honest:
        manifest = json.loads(files["manifest.json"])
        for name in manifest["sha256"]:
            manifest["sha256"][name] = hashlib.sha256(files[name]).hexdigest()
        files["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def content(path: Path, name: str) -> str:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name).decode()


@pytest.mark.parametrize("control", [False, True])
def test_a_bundle_gives_the_same_verdict(written, control) -> None:
    """Judged again from the file alone, the verdict is the same byte for byte."""
    path = written(control=control)
    assert bundle.verify(path) == ()
    found = CliRunner().invoke(app, ["verify", str(path)])
    assert (found.exit_code, found.stdout) == (0, f"{path}: the same verdict, byte for byte\n")


def test_the_same_inputs_give_the_same_file(written) -> None:
    """No clock and no order of this machine is in it."""
    first = written().read_bytes()
    assert written().read_bytes() == first


def test_another_verdict_is_seen(written) -> None:
    """A verdict that the inputs do not give is exit 1, with the lines that differ."""
    path = written()
    verdict = content(path, "verdict.json").replace('"outcome": "pass"', '"outcome": "fail"')
    rewrite(path, honest=True, verdict_json=verdict.encode())
    found = CliRunner().invoke(app, ["verify", str(path)])
    assert found.exit_code == 1
    assert '"outcome": "pass",' in found.stdout
    assert "judged again, the verdict differs" in found.stderr


def test_another_policy_is_seen(written) -> None:
    """A margin moved after the fact gives another verdict."""
    path = written()
    rewrite(path, honest=True, policy_yaml=POLICY.replace("1.25", "1.20").encode())
    assert any("policy_hash" in line for line in bundle.verify(path))


def test_a_file_that_was_changed_is_refused(written) -> None:
    """A file that is not what the manifest says is unusable, not different."""
    path = rewrite(written(), honest=False, policy_yaml=b"version: 1")
    found = CliRunner().invoke(app, ["verify", str(path)])
    assert found.exit_code == 2
    assert "policy.yaml: not what manifest.json says was written" in found.stderr


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"manifest_json": b"{}"}, "wanted version, rollout and hashes"),
        ({"manifest_json": b"[]"}, "wanted version, rollout and hashes"),
        (
            {"manifest_json": b'{"format_version": 2, "rollout": "x", "sha256": {}}'},
            "wanted format version 1, got 2",
        ),
    ],
)
def test_a_manifest_that_says_nothing(written, changed, message) -> None:
    """What the manifest must hold is named."""
    with pytest.raises(BundleError, match=message):
        bundle.verify(rewrite(written(), honest=False, **changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"verdict_json": b"{}"}, "verdict.json: wanted a verdict"),
        ({"verdict_json": b"nonsense"}, "verdict.json: wanted a verdict"),
        ({"pairs_arrow": b"nonsense"}, "pairs.arrow: wanted an Arrow stream"),
    ],
)
def test_contents_that_cannot_be_read(written, changed, message) -> None:
    """A file that is as written and makes no sense is unusable too."""
    with pytest.raises(BundleError, match=message):
        bundle.verify(rewrite(written(), honest=True, **changed))


def test_what_is_no_bundle(tmp_path: Path, inputs_of) -> None:
    """A missing, a truncated and a foreign file are named, and a path that can hold none."""
    with pytest.raises(BundleError, match="wanted a bundle of"):
        bundle.verify(tmp_path / "none.zip")
    (tmp_path / "cut.zip").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(BundleError, match="wanted a bundle of"):
        bundle.verify(tmp_path / "cut.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme", "hello")
    with pytest.raises(BundleError, match=r"manifest\.json, pairs\.arrow.* inside"):
        bundle.verify(tmp_path / "other.zip")
    inputs = inputs_of()
    with pytest.raises(BundleError, match="cannot be written"):
        bundle.write(tmp_path / "no" / "k4.zip", inputs, bundle.judge(inputs, "p"))
    pipe = tmp_path / "pipe.zip"
    os.mkfifo(pipe)
    with pytest.raises(BundleError, match="cannot be written: it is a folder or a device"):
        bundle.write(pipe, inputs, bundle.judge(inputs, "p"))
    assert pipe.is_fifo()


def test_numbers_are_stated_to_twelve_digits() -> None:
    """The last digits of a double, which differ between builds, are not stated."""
    assert significant(1 / 3) == 0.33333333
    assert significant(0.1 + 0.2) == 0.3
    assert significant(1.23456789e-200, 6) == 1.23457e-200
    assert significant(None) is None
    assert significant(0.0) == 0.0
