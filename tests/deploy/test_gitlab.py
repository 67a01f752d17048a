"""GitLab's template: its own script runs, with the variables that GitLab sets."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from forge_server import Forge, forge_running
from made_verdicts import send_pairs

from collector.client import Client

ROOT = Path(__file__).parent.parent.parent
JOB = yaml.safe_load((ROOT / "deploy/gitlab/draftgate.gitlab-ci.yml").read_text())["draftgate"]
FORGE_TOKEN = {"DRAFTGATE_GITLAB_TOKEN": "secret"}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def forge() -> Iterator[Forge]:
    with forge_running() as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, forge: Forge) -> Run:
    """Give a function that runs the job's script on a rollout of one pair."""
    url = f"sqlite:///{tmp_path / 'draftgate.db'}"
    with Client.local(url) as client:
        send_pairs(client, "k4")
    binary = tmp_path / "bin" / "draftgate"
    binary.parent.mkdir()
    binary.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m draftgate "$@"\n')
    binary.chmod(binary.stat().st_mode | stat.S_IEXEC)
    own = {name: str(value) for name, value in JOB["variables"].items()} | {
        "PATH": f"{binary.parent}:{os.environ['PATH']}",
        "DRAFTGATE_DATABASE_URL": url,
        "DRAFTGATE_ROLLOUT": "k4",
        "CI_API_V4_URL": forge.url,
        "CI_PROJECT_ID": "42",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_JOB_URL": "https://gitlab.com/acme/app/-/jobs/5",
    }

    def with_variables(**variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", "\n".join(JOB["script"])],
            env=os.environ | own | variables, cwd=tmp_path,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    return with_variables


@pytest.mark.slow
def test_the_job_ends_as_the_verdict(run: Run, forge: Forge, tmp_path: Path) -> None:
    """With the artifact, JUnit's report, and one note that is updated."""
    for _ in range(2):
        assert run(**FORGE_TOKEN).returncode == 3
    (body,) = forge.bodies()
    assert "## ❔ inconclusive" in body
    assert "(https://gitlab.com/acme/app/-/jobs/5)" in body
    assert (tmp_path / JOB["artifacts"]["reports"]["junit"]).read_text().startswith("<?xml")
    (folder,) = JOB["artifacts"]["paths"]
    assert (tmp_path / folder / "bundle.zip").exists()


@pytest.mark.slow
def test_without_a_token_there_is_no_note(run: Run, forge: Forge) -> None:
    """The job ends as the verdict all the same."""
    assert run().returncode == 3
    assert forge.asked == []


@pytest.mark.slow
def test_a_note_that_fails_changes_no_verdict(run: Run, forge: Forge) -> None:
    """It is said in the job's log."""
    forge.fault = lambda _method, _number: 403
    ran = run(**FORGE_TOKEN)
    assert ran.returncode == 3
    assert "the merge request has no new note" in ran.stdout


@pytest.mark.slow
def test_what_cannot_be_judged_fails(run: Run, forge: Forge) -> None:
    """There is no verdict to write a note of."""
    ran = run(DRAFTGATE_ROLLOUT="none", **FORGE_TOKEN)
    assert ran.returncode == 2
    assert forge.asked == []


def test_inconclusive_warns() -> None:
    """Its exit code is the one that may fail."""
    assert JOB["allow_failure"] == {"exit_codes": 3}
    assert JOB["artifacts"]["when"] == "always"
