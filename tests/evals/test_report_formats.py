"""The verdict as Markdown, as JUnit, and as annotations."""

import io
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from collector.contract import Outcome
from evals import policy
from evals.gate import decide
from evals.report.formats import FORMATS, to_github, to_junit, to_markdown
from evals.report.terminal import print_verdict
from evals.report.visible_text import visible

RULES = policy.parse(
    """
version: 1
name: test
prove:
  - {metric: e2e, stat: geomean_ratio, max: 1.00, scope: pooled}
  - {metric: task_completion, stat: diff, min: -0.10, scope: cohort, cohorts: ["a|b<i>", gone]}
guard:
  - {metric: e2e, stat: p99_ratio, max: 1.25, scope: pooled}
report:
  - {metric: ttft, stat: geomean_ratio, max: 1.00, scope: pooled}
""",
    "test.yaml",
)


@pytest.fixture
def verdict_of(evidence_of, side):
    """Give the verdict on 60 pairs whose candidate takes `factor` of the time."""

    def make(factor: float):
        rows = [
            {
                "prompt_id": f"p{i:03}",
                "cohort": "a|b<i>",
                "baseline": side(e2e_s=1.0 + i / 100, score_task_completion=1.0),
                "candidate": side(e2e_s=factor * (1.0 + i / 90), score_task_completion=1.0),
            }
            for i in range(60)
        ]
        return decide(evidence_of(rows), RULES, rollout="k4\n::error::x")

    return make


def test_markdown_holds_a_row_a_cell(verdict_of) -> None:
    """Every cell has eight columns, whatever its cohort's name, and the worst comes first."""
    verdict = verdict_of(0.5)
    lines = to_markdown(verdict).splitlines()
    assert lines[0] == "## ❔ inconclusive"
    rows = [line for line in lines if line.startswith("| ")][1:]
    assert len(rows) == len(verdict.findings)
    assert {row.replace("\\|", "").count("|") for row in rows} == {9}
    (passed,) = [row for row in rows if r"| a\|b\<i\> | task_completion diff | prove |" in row]
    assert passed.endswith("| 0.0 pp | −4.3 pp … +4.3 pp | ≥ −10.0 pp | 60 | ✅ pass |")
    marks = [row.split("|")[-2].split()[0] for row in rows if "| report |" not in row]
    assert marks == sorted(marks, key="❌❔✅".index)


def test_junit_counts_what_decides(verdict_of) -> None:
    """A proof that is open is an error, a guard that is open is skipped, a fail is a failure."""
    good, bad = (ET.fromstring(to_junit(verdict_of(f)).encode()) for f in (0.5, 2.0))  # noqa: S314  # our own
    assert {k: good.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "0",
        "errors": "1",
        "skipped": "2",
    }
    assert bad.get("failures") == "1"
    (failure,) = bad.iter("failure")
    assert "geometric-mean end-to-end latency, pooled" in failure.get("message")


def test_annotations_stand_on_one_line_each(verdict_of) -> None:
    """A name with a line break starts no command of its own."""
    lines = to_github(verdict_of(2.0)).splitlines()
    assert all(line.startswith("::") for line in lines)
    ships = "::error title=fail::May it ship: no. k4%0A::error::x fails on 60 pairs"
    assert lines[0].startswith(ships)
    lines = [line for line in lines if "title=answer::" not in line]
    assert len(lines) == 3
    assert lines[1].startswith("::error title=fail%3A e2e geomean_ratio pooled::geometric-mean")
    assert lines[2].startswith("::warning title=inconclusive%3A task_completion diff in gone::")


def test_every_format_is_deterministic(verdict_of) -> None:
    """The same verdict is the same text."""
    assert verdict_of(0.5).outcome is Outcome.INCONCLUSIVE
    for form in FORMATS.values():
        assert form(verdict_of(0.5)) == form(verdict_of(0.5))


HOSTILE = (
    "::error::x\x1b]0;pwned\x07\x1b[31m\r\n::add-mask::y\u202e\x9b1m "
    "@all https://evil.example `a` *b*"
)


def _hostile(verdict):
    return replace(
        verdict,
        rollout=HOSTILE,
        summary=HOSTILE,
        reasons=(HOSTILE,),
        findings=tuple(replace(f, cohort=HOSTILE, message=HOSTILE) for f in verdict.findings),
    )


@pytest.mark.parametrize("form", ["terminal", "markdown", "junit", "github"])
def test_names_do_nothing_to_what_shows_them(form, verdict_of) -> None:
    """No control character passes, no line is a command, and XML stays XML."""
    verdict = _hostile(verdict_of(2.0))
    if form == "terminal":
        console = Console(file=io.StringIO(), width=200, force_terminal=False)
        print_verdict(console, verdict)
        text = console.file.getvalue()
    else:
        text = FORMATS[form](verdict)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]", text)
    commands = [line for line in text.splitlines() if line.lstrip().startswith(("::", "##["))]
    ours = ("::error title=", "::warning title=", "::notice title=")
    assert all(form == "github" and line.startswith(ours) for line in commands)
    if form == "junit":
        assert ET.fromstring(text.encode()) is not None  # noqa: S314  # our own
    if form == "markdown":
        assert not re.search(r"(?<!\\)[`*]a|@all|https://", text.partition("Policy")[0])


@given(st.text())
def test_what_is_visible_is_shown_as_it_is(text: str) -> None:
    """A text that is safe stays; one that is not becomes safe once and for all."""
    assert visible(visible(text)) == visible(text)
    if text.isprintable() and not text.lstrip().startswith(("::", "##[")):
        assert visible(text) == text
