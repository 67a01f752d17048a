"""The fixture `assert_rollout`, in a pytest of its own process."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from collector.client import Client
from collector.contract import Arm, Speculation
from evals import source

ROOT = Path(__file__).parent.parent.parent


TESTS = """
def test_good(assert_rollout):
    assert assert_rollout("good", policy="policy.yaml", collector="{database}").pairs == 160

def test_slow(assert_rollout):
    assert_rollout("slow", policy="policy.yaml", collector="{database}")

def test_absent(assert_rollout):
    assert_rollout("absent", collector="{database}")
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory, otlp_of, generation_of) -> str:
    """Return what pytest says of three rollouts: a good one, a slow one, one that is not there."""
    folder = tmp_path_factory.mktemp("ci")
    database = f"sqlite:///{folder / 'ci.db'}"
    noise = Random(7)  # noqa: S311
    with Client.local(database) as client:
        for rollout, first, factor in (("good", 1, 0.6), ("slow", 1001, 1.5)):
            generations = [
                generation_of(
                    first + 2 * i + turn,
                    "yes",
                    rollout=rollout,
                    arm=arm,
                    cohort="chat",
                    prompt_id=f"p{i:03}",
                    repeat=0,
                    output_tokens=20,
                    speculation=Speculation(draft_tokens=24, accepted_tokens=12)
                    if arm is Arm.CANDIDATE
                    else None,
                    end_unix_ns=(first + 2 * i + turn) * 10**10
                    + int(
                        (1 + i % 7 / 10)
                        * (factor if arm is Arm.CANDIDATE else 1)
                        * noise.lognormvariate(0, 0.02)
                        * 10**9
                    ),
                )
                for i in range(160)
                for turn, arm in enumerate(tuple(Arm) if i % 2 else tuple(Arm)[::-1])
            ]
            client.post_traces(otlp_of(generations), content_type="application/json")
            assert len(source.load_pairs(client, rollout)) == 160
    (folder / "policy.yaml").write_text(
        "version: 1\nname: ci\n"
        "prove: [{metric: e2e, stat: geomean_ratio, max: 1.0, scope: pooled}]\n"
    )
    (folder / "test_ship.py").write_text(TESTS.format(database=database))
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "."]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 1, found.stdout + found.stderr
    return found.stdout


def test_a_good_rollout_passes(said: str) -> None:
    """The fixture returns the verdict of a rollout that passes."""
    assert "PASSED test_ship.py::test_good" in said


def test_a_slow_rollout_fails_with_its_reasons(said: str) -> None:
    """The test's failure is the verdict in words."""
    assert "FAILED test_ship.py::test_slow" in said
    assert "slow fails on 160 pairs: 1 cell is beyond the margin." in said
    assert "geometric-mean end-to-end latency, pooled" in said


def test_nothing_to_judge_is_an_error(said: str) -> None:
    """A rollout that is not there is no failed gate."""
    assert "FAILED test_ship.py::test_absent" in said
    assert "SourceError: rollout absent: the collector holds no such rollout" in said
