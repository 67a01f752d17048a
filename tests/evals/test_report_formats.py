"""The verdict as Markdown, as JUnit, and as annotations."""

from xml.etree import ElementTree as ET

import pytest

from collector.contract import Outcome
from evals import policy
from evals.gate import decide
from evals.report_formats import FORMATS, to_github, to_junit, to_markdown

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
    """Every cell has eight columns, whatever its cohort's name."""
    verdict = verdict_of(0.5)
    lines = to_markdown(verdict).splitlines()
    assert lines[0] == "## ❔ inconclusive"
    rows = [line for line in lines if line.startswith("| ")][1:]
    assert len(rows) == len(verdict.findings)
    assert {row.replace("\\|", "").count("|") for row in rows} == {9}
    assert r"| a\|b\<i\> | task_completion diff | prove |" in rows[1]
    assert rows[1].endswith("| ≥ -0.1 | 60 | ✅ pass |")


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
