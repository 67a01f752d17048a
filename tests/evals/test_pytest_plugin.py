"""The fixture `assert_rollout`, in a pytest of its own process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from collector.client import Client
from collector.contract import Arm
from evals import source

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def outcome_of(tmp_path: Path, otlp_of, generation_of):
    """Give a function that runs a test file against a database with one rollout of 160 pairs."""

    def run(call: str, *, factor: float = 0.6) -> subprocess.CompletedProcess[str]:
        database = f"sqlite:///{tmp_path / 'ci.db'}"
        generations = [
            generation_of(
                2 * i + turn + 1,
                "yes",
                rollout="k4",
                arm=arm,
                cohort="chat",
                prompt_id=f"p{i:03}",
                repeat=0,
                output_tokens=20,
                end_unix_ns=(2 * i + turn + 1) * 10**10
                + int(
                    (1 + i % 7 / 10) * (factor + i % 3 / 100 if arm is Arm.CANDIDATE else 1) * 10**9
                ),
            )
            for i in range(160)
            for turn, arm in enumerate(
                (Arm.BASELINE, Arm.CANDIDATE) if i % 2 else (Arm.CANDIDATE, Arm.BASELINE)
            )
        ]
        with Client.local(database) as client:
            client.post_traces(otlp_of(generations), content_type="application/json")
            assert source.load_pairs(client, "k4").num_rows == 160
        (tmp_path / "policy.yaml").write_text(
            "version: 1\nname: ci\n"
            "prove: [{metric: e2e, stat: geomean_ratio, max: 1.0, scope: pooled}]\n"
        )
        text = f"def test_ship(assert_rollout):\n    {call.format(database=database)}\n"
        (tmp_path / "test_ship.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-q", "."]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def test_a_good_rollout_passes(outcome_of) -> None:
    """The fixture returns the verdict of a rollout that passes."""
    found = outcome_of(
        "assert assert_rollout('k4', policy='policy.yaml', collector='{database}').pairs == 160"
    )
    assert found.returncode == 0, found.stdout


def test_a_slow_rollout_fails_with_its_reasons(outcome_of) -> None:
    """The test's failure is the verdict in words."""
    found = outcome_of(
        "assert_rollout('k4', policy='policy.yaml', collector='{database}')", factor=1.5
    )
    assert found.returncode == 1
    assert "k4 fails on 160 pairs: 1 cell is beyond the margin." in found.stdout
    assert "geometric-mean end-to-end latency, pooled" in found.stdout


def test_nothing_to_judge_is_an_error(outcome_of) -> None:
    """A rollout that is not there is no failed gate."""
    found = outcome_of("assert_rollout('k9', collector='{database}')")
    assert found.returncode == 1
    assert "SourceError: rollout k9: the collector holds no such rollout" in found.stdout
