"""The demo as its user runs it: a command, real models, a database, verdicts, a page."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from page_reading import finding_rows, formatted, go, numbers
from playwright.sync_api import Page, expect
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Finding, Outcome, Verdict, from_document
from demo.cli import app
from evals.report.findings_by_margin import worst_first

DEMO = [sys.executable, "-m", "draftgate", "demo"]
COHORTS = {"chat", "code", "rag", "tool_call"}


def verdict_of(folder: Path, name: str) -> Verdict:
    return from_document(Verdict, json.loads((folder / f"{name}.verdict.json").read_text()))


def only_run(parent: Path) -> Path:
    (folder,) = parent.iterdir()
    return folder


@pytest.mark.slow
def test_a_small_demo_goes_the_whole_way_and_claims_nothing(tmp_path: Path) -> None:
    """On 8 pairs all is inconclusive; spans, scores and verdicts are in the database."""
    command = [*DEMO, "--pairs", "8", "--no-dashboard", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    folder = only_run(tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == [
        "broken.verdict.json",
        "broken.yaml",
        "collector.log",
        "draftgate.db",
        "good.verdict.json",
        "good.yaml",
    ]
    with Client.local(f"sqlite:///{folder}/draftgate.db") as client:
        assert {o.rollout: (o.pairs, o.quality_flagged) for o in client.rollouts()} == {
            "demo-good": (8, 0),
            "demo-broken": (8, 0),
        }
        for name in ("good", "broken"):
            verdict = verdict_of(folder, name)
            assert verdict.outcome is Outcome.INCONCLUSIVE
            assert (verdict.pairs, verdict.incomplete_pairs, verdict.failed_pairs) == (8, 0, 0)
            assert client.verdicts(f"demo-{name}")[0].verdict == verdict
            registered = client.history(f"demo-{name}").registered
            assert registered is not None
            assert (registered.policy_name, registered.before_first_pair) == ("demo", True)
            scored = {(s.metric, s.unscored_reason) for s in client.scores(f"demo-{name}")}
            assert scored == {
                ("format_intact", None),
                ("groundedness", None),
                ("parity", None),
                ("schema_validity", None),
                ("task_completion", None),
            }


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.browser
@pytest.mark.timeout(1800)
def test_the_whole_demo(tmp_path: Path, page: Page, free_port: Callable[[], int]) -> None:
    """The evidence speaks: good never fails, broken fails, 20 pairs decide nothing.

    The page shows the verdict, and each of its numbers is the one that `gate --json` prints. Ended
    by SIGTERM, the demo takes its collector and dashboard with it.
    """
    command = [*DEMO, "--folder", str(tmp_path), "--port", str(free_port())]
    log = tmp_path.with_suffix(".log")
    with log.open("w") as output, subprocess.Popen(command, stdout=output) as process:
        try:
            url = dashboard_address(log, process)
            folder = only_run(tmp_path)
            check_evidence(folder)
            for name in ("good", "broken", "thin"):
                check_page(page, url, folder, name)
        finally:
            process.terminate()
    assert process.returncode == 128 + signal.SIGTERM


def dashboard_address(log: Path, process: "subprocess.Popen[bytes]") -> str:
    """Wait until the demo prints its dashboard's address, and return it."""
    while process.poll() is None:
        found = re.search(r"Dashboard: (http\S+)", log.read_text())
        if found:
            return found.group(1)
        time.sleep(0.5)
    raise AssertionError(f"the demo ended early:\n{log.read_text()}")


def check_evidence(folder: Path) -> None:
    """Check what the demo must show, whatever the machine."""
    good, broken, thin = (verdict_of(folder, name) for name in ("good", "broken", "thin"))
    assert good.outcome is not Outcome.FAIL
    assert broken.outcome is Outcome.FAIL
    assert thin.outcome is Outcome.INCONCLUSIVE
    answers = {x.cohort: x.generations for x in good.latency if x.arm == "candidate"}
    assert answers == dict.fromkeys(COHORTS, 40) | {None: 160}
    e2e = [f for f in good.findings if (f.metric, f.stat) == ("e2e", "geomean_ratio") and f.cohort]
    assert {f.cohort for f in e2e} == COHORTS
    assert any(f.upper is not None and f.upper < 1 for f in e2e)
    rates = [a.rate for a in good.acceptance if a.cohort and a.rate is not None]
    assert len(rates) == 4
    assert max(rates) - min(rates) > 0.1


def without_arrivals(document: dict[str, Any]) -> dict[str, Any]:
    """Return a verdict without how far the store had come: other rollouts arrive in it, too."""
    unknown = {"arrived_up_to": None, "scored_up_to": None}
    return document | {"evidence": [part | unknown for part in document["evidence"]]}


def check_page(page: Page, url: str, folder: Path, name: str) -> None:
    """Check that the page's verdict and numbers are those that `gate --json` prints."""
    database = f"sqlite:///{folder}/draftgate.db"
    gate = [sys.executable, "-m", "draftgate", "gate", f"demo-{name}", "--json", "--no-post"]
    gate += ["--policy", "demo", "--database", database]
    printed = subprocess.run(gate, capture_output=True, text=True, check=False).stdout
    document = json.loads(printed)
    kept = json.loads((folder / f"{name}.verdict.json").read_text())
    assert without_arrivals(document) == without_arrivals(kept)
    go(page, f"{url}/rollout?rollout=demo-{name}")
    word = page.get_by_role("status").locator(".dg-word")
    expect(word).to_have_text(document["outcome"].capitalize())
    findings = worst_first([from_document(Finding, f) for f in document["findings"]])
    shown = [numbers(row) for row in finding_rows(page, len(findings))]
    assert shown == [formatted(finding) for finding in findings]


@pytest.mark.parametrize("pairs", ["3", "201", "many"])
def test_a_bad_size_is_refused(pairs: str) -> None:
    """Fewer pairs than cohorts, more than there are prompts, or no number: exit 2, nothing done."""
    result = CliRunner().invoke(app, ["--pairs", pairs])
    assert result.exit_code == 2
    assert "--pairs" in result.output


def test_a_port_in_use_is_told_before_the_work(tmp_path: Path) -> None:
    """Nobody waits minutes to learn that the dashboard cannot start."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(app, ["--port", port, "--folder", str(tmp_path / "runs")])
    assert result.exit_code == 2
    assert f"error: port {port} on 127.0.0.1 is already in use" in result.output
    assert not (tmp_path / "runs").exists()
