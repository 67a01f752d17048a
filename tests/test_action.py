"""GitHub's action: its own shell steps run, with the variables that GitHub sets."""

import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from forge_server import Forge, forge_running
from otlp_bodies import export_request

from collector.client import Client
from collector.contract import Arm, Generation, Speculation, encode
from evals import bundle as bundles
from evals.attestation import keys, signed_bundle
from evals.attestation.envelope import from_bytes

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
DRAFTED = Speculation(method="draft_model", steps=5, draft_tokens=20, accepted_tokens=15)
POLICY = """
version: 1
name: ci
prove:
  - {metric: failures, stat: diff, max: 0.10, scope: pooled}
"""


class Job(NamedTuple):
    """The results of a run of the action."""

    code: int
    outputs: Mapping[str, str]
    summary: str
    said: str
    folder: Path


@pytest.fixture
def job(tmp_path: Path) -> Any:
    """Give a function that runs the action's shell steps, but the installation, in a repository."""
    binary = tmp_path / "bin" / "draftgate"
    binary.parent.mkdir()
    binary.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m draftgate "$@"\n')
    binary.chmod(binary.stat().st_mode | stat.S_IEXEC)
    (tmp_path / "policy.yaml").write_text(POLICY)

    def run(env: Mapping[str, str] | None = None, **inputs: str) -> Job:
        given = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        runner = tmp_path / f"runner-{inputs['rollout']}"
        runner.mkdir(exist_ok=True)
        files = {name: runner / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        plain = os.environ | (env or {}) | {name: str(file) for name, file in files.items()}
        plain |= {"PATH": f"{binary.parent}:{os.environ['PATH']}", "RUNNER_TEMP": str(runner)}
        outputs: dict[str, str] = {}
        said, code = "", 0
        for step in (s for s in ACTION["runs"]["steps"] if "run" in s and s["name"] != "Install"):
            own = {name: filled(text, given, outputs) for name, text in step["env"].items()}
            ran = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                env=plain | own, cwd=tmp_path, capture_output=True, text=True, check=False,
            )  # fmt: skip
            said, code = said + ran.stdout + ran.stderr, ran.returncode
            outputs = dict(
                line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines()
            )
        summary = files["GITHUB_STEP_SUMMARY"].read_text()
        return Job(code, outputs, summary, said, Path(outputs["folder"]))

    return run


def filled(text: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> str:
    """Put values in the place of GitHub's expressions."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name.startswith("inputs."):
            return inputs[name.removeprefix("inputs.")]
        if name.startswith("steps.gate.outputs."):
            return outputs[name.removeprefix("steps.gate.outputs.")]
        return {"github.action_path": str(ROOT)}[name]

    return re.sub(r"\$\{\{ (\S+) \}\}", value, text)


def lasted(prompt: int, arm: Arm) -> int:
    """Return nanoseconds that vary as those of answers do, with either arm ahead at times."""
    return (prompt * 7919 + (arm is Arm.CANDIDATE) * 104_729) * 12_345_679 % 10**8


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Store a rollout that passes, one that fails, and one that is too small."""
    url = f"sqlite:///{tmp_path / 'draftgate.db'}"
    with Client.local(url) as client:
        for rollout, prompts, fails in (("good", 60, 0), ("bad", 60, 2), ("small", 5, 0)):
            sides = [
                Generation(
                    trace_id=f"{hash((rollout, p, arm)) % 2**60 + 1:032x}",
                    span_id=f"{p + 1:016x}",
                    start_unix_ns=10**18 + p * 10**9 + (p + (arm is Arm.BASELINE)) % 2,
                    end_unix_ns=10**18 + (p + 1) * 10**9 + lasted(p, arm),
                    rollout=rollout, arm=arm, prompt_id=str(p), repeat=0, cohort="chat",
                    speculation=DRAFTED if arm is Arm.CANDIDATE else None,
                    error_type="timeout" if arm is Arm.CANDIDATE and p % 3 < fails else None,
                )
                for p in range(prompts) for arm in Arm
            ]  # fmt: skip
            body = export_request([encode(one) for one in sides]).SerializeToString()
            client.post_traces(body)
    return url


@pytest.mark.parametrize(
    ("rollout", "code", "outcome", "level"),
    [
        ("good", 0, "pass", "notice"),
        ("bad", 1, "fail", "error"),
        ("small", 3, "inconclusive", "warning"),
    ],
)  # fmt: skip
def test_the_job_ends_as_the_verdict(
    job: Any, database: str, rollout: str, code: int, outcome: str, level: str
) -> None:
    """Summary, annotations and every file of the artifact are there, whatever the outcome."""
    ran = job(rollout=rollout, policy="policy.yaml", database=database)
    assert (ran.code, ran.outputs["outcome"]) == (code, outcome)
    assert ran.summary.startswith("## ")
    assert f" {outcome}\n" in ran.summary
    assert f"::{level} title={outcome}::" in ran.said
    assert json.loads((ran.folder / "verdict.json").read_text())["outcome"] == outcome
    assert (ran.folder / "junit.xml").read_text().startswith("<?xml")
    assert "pairs.arrow" in zipfile.ZipFile(ran.folder / "bundle.zip").namelist()


@pytest.fixture
def pull_request(tmp_path: Path) -> Iterator[tuple[Forge, Mapping[str, str]]]:
    """Give a forge, and the variables of a job on its pull request 7."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    with forge_running() as forge:
        yield (
            forge,
            {
                "GITHUB_EVENT_NAME": "pull_request",
                "GITHUB_EVENT_PATH": str(event),
                "GITHUB_API_URL": forge.url,
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_REPOSITORY": "acme/app",
                "GITHUB_RUN_ID": "99",
            },
        )


@pytest.mark.slow
def test_the_pull_request_gets_one_comment(job: Any, database: str, pull_request: Any) -> None:
    """The second verdict replaces the first, and leads to its job."""
    forge, env = pull_request
    given = {"policy": "policy.yaml", "database": database, "token": "secret"}
    assert job(env, rollout="bad", **given).code == 1
    assert job(env, rollout="good", **given).code == 0
    (body,) = forge.bodies()
    assert "## ✅ pass" in body
    assert "(https://github.com/acme/app/actions/runs/99)" in body


@pytest.mark.slow
def test_a_comment_that_fails_changes_no_verdict(
    job: Any, database: str, pull_request: Any
) -> None:
    """A fork's token may not write: the job warns, and ends as the verdict."""
    forge, env = pull_request
    forge.fault = lambda _method, _number: 403
    given = {"policy": "policy.yaml", "database": database, "token": "secret"}
    ran = job(env, rollout="good", **given)
    assert ran.code == 0
    assert "::warning title=draftgate: no comment::error: " in ran.said
    assert "pull-requests: write" in ran.said


@pytest.mark.slow
def test_no_comment_is_asked_for(job: Any, database: str, pull_request: Any) -> None:
    """On a push, and where the workflow says so."""
    forge, env = pull_request
    given = {"rollout": "good", "policy": "policy.yaml", "database": database, "token": "secret"}
    assert job(env, comment="false", **given).code == 0
    assert job({**env, "GITHUB_EVENT_NAME": "push"}, **given).code == 0
    assert forge.asked == []


@pytest.mark.slow
def test_the_bundle_is_signed(job: Any, database: str, pull_request: Any, tmp_path: Path) -> None:
    """By the job's key, which is left nowhere; the statement names the job."""
    key = keys.generate(tmp_path / "judge.pem")
    _, env = pull_request
    secret = key.private.read_text()
    given = {"policy": "policy.yaml", "database": database, "comment": "false"}
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    ran = job({**env, "TMPDIR": str(scratch)}, rollout="good", sign_key=secret, **given)
    assert ran.code == 0
    bundle = bundles.files_of(ran.folder / "bundle.zip")
    envelope = bundle.pop(bundles.ENVELOPE)
    assert signed_bundle.check(envelope, bundle, bundles.VERDICT, key.public) == (key.keyid,)
    assert b"acme/app/actions/runs/99" in from_bytes(envelope).payload
    assert list(scratch.iterdir()) == []
    assert secret.splitlines()[1] not in ran.said


def test_actions_are_pinned() -> None:
    """By a commit, with the version beside it: a tag can be moved."""
    example = (ROOT / "docs" / "examples" / "github-workflow.yml").read_text()
    uses = re.findall(r"uses: (\S+)(.*)", (ROOT / "action.yml").read_text() + example)
    others = [one for one in uses if not one[0].startswith("draftgate/")]
    assert len(others) >= 3
    for name, comment in others:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name)
        assert re.fullmatch(r" # v[0-9.]+", comment)


@pytest.mark.slow
def test_inconclusive_may_pass(job: Any, database: str) -> None:
    """Where the workflow says so; a fail never does."""
    given = {"policy": "policy.yaml", "database": database, "inconclusive": "pass"}
    assert job(rollout="small", **given).code == 0
    assert job(rollout="bad", **given).code == 1


@pytest.mark.slow
def test_what_cannot_be_judged_fails(job: Any, database: str) -> None:
    """An unknown rollout and a wrong policy fail the job, and the summary says why."""
    ran = job(rollout="none", policy="policy.yaml", database=database)
    assert (ran.code, ran.outputs["outcome"]) == (2, "unusable")
    assert "the collector holds no such rollout" in ran.summary
    assert "::error title=draftgate::" in ran.said


@pytest.mark.slow
def test_inputs_are_data(job: Any, database: str, tmp_path: Path) -> None:
    """No step writes an input into its script: a rollout's name cannot be a command."""
    scripts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert [script for script in scripts if "${{" in script] == []
    job(rollout="$(touch owned); touch owned", policy="policy.yaml", database=database)
    assert not list(tmp_path.rglob("owned"))


def test_the_example_names_what_the_action_takes() -> None:
    """The workflow of the docs gives inputs that exist, and all that are required."""
    document = yaml.safe_load((ROOT / "docs" / "examples" / "github-workflow.yml").read_text())
    (used,) = (s for s in document["jobs"]["gate"]["steps"] if "draftgate@" in s.get("uses", ""))
    required = {name for name, spec in ACTION["inputs"].items() if spec.get("required")}
    assert required <= set(used["with"]) <= set(ACTION["inputs"])


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    """`--write` says what it takes."""
    command = [sys.executable, "-m", "draftgate", "gate", "k4", "--write", "pdf=x"]
    command += ["--database", f"sqlite:///{tmp_path / 'd.db'}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ran.returncode == 2
    assert "--write pdf=x: wanted FORMAT=FILE, with one of json, markdown" in ran.stderr
