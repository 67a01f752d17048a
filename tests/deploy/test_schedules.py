"""Examples that judge on a schedule: what they start exists, and their formats are right."""

import configparser
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from typer import Context

from draftgate.commands import load

ROOT = Path(__file__).parent.parent.parent
SCHEDULE = ROOT / "deploy" / "schedule"
FIVE_FIELDS = re.compile(r"(\S+ ){4}\S+")


def understood(words: Sequence[str]) -> None:
    """Parse a command as `draftgate` does; raises if an option does not exist."""
    command: Any = load(words[0])
    command.make_parser(Context(command)).parse_args(list(words[1:]))


def units(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    parser.read(SCHEDULE / name)
    return parser


def test_the_cron_job() -> None:
    """It is a CronJob of Kubernetes, whose runs do not overlap, and what it runs exists."""
    document = yaml.safe_load((SCHEDULE / "cronjob.yaml").read_text())
    kubernetes_validate.validate(document, "1.30", strict=True)
    assert FIVE_FIELDS.fullmatch(document["spec"]["schedule"])
    assert document["spec"]["concurrencyPolicy"] == "Forbid"
    pod = document["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    understood(pod["containers"][0]["args"])


def test_the_workflow() -> None:
    """It runs by the clock, its commands exist, and it gives the action what it takes."""
    document = yaml.safe_load((SCHEDULE / "github-workflow.yml").read_text())
    (when,) = document[True]["schedule"]  # YAML reads `on` as true
    assert FIVE_FIELDS.fullmatch(when["cron"])
    steps = document["jobs"]["judge"]["steps"]
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    ours = [shlex.split(line)[1:] for line in lines if line.startswith("draftgate ")]
    assert len(ours) == 3
    for words in ours:
        understood(words)
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    (used,) = (step for step in steps if step.get("uses", "").startswith("draftgate/"))
    assert set(used["with"]) <= set(inputs)
    others = [s["uses"] for s in steps if "uses" in s and s is not used]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one) for one in others)


def test_the_timer_and_its_service() -> None:
    """The timer has the service's name, and the service's command exists."""
    service, timer = units("draftgate-watch@.service"), units("draftgate-watch@.timer")
    assert timer["Timer"]["OnCalendar"]
    assert timer["Install"]["WantedBy"] == "timers.target"
    assert service["Service"]["Type"] == "oneshot"
    understood(shlex.split(service["Service"]["ExecStart"])[1:])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_reads_the_calendar() -> None:
    """As a time that comes again."""
    calendar = units("draftgate-watch@.timer")["Timer"]["OnCalendar"]
    done = subprocess.run(
        ["systemd-analyze", "calendar", calendar], check=True, capture_output=True
    )
    assert b"Next elapse" in done.stdout
