"""A verdict on a terminal."""

import io

import pytest
from rich.console import Console

from evals import policy
from evals.gate import decide
from evals.report.terminal import print_verdict

RULES = policy.parse(
    """
version: 1
name: test
prove:
  - {metric: e2e, stat: geomean_ratio, max: 1.00, scope: pooled}
  - {metric: task_completion, stat: diff, min: -0.10, scope: cohort, cohorts: ["[b]odd", gone]}
""",
    "test.yaml",
)


@pytest.fixture
def printed(evidence_of, side):
    """Give a function that prints the verdict on some pairs at a width."""

    def text(pairs: int, width: int = 120) -> str:
        rows = [
            {
                "prompt_id": f"p{i:03}",
                "cohort": "[b]odd",
                "baseline": side(e2e_s=1.0 + i / 100, score_task_completion=1.0),
                "candidate": side(
                    e2e_s=0.5 + i / 150,
                    score_task_completion=1.0,
                    speculated=True,
                    counts_usable=True,
                    spec_steps=4,
                    spec_draft_tokens=8,
                    spec_accepted_tokens=4,
                ),
            }
            for i in range(pairs)
        ]
        out = io.StringIO()
        verdict = decide(evidence_of(rows), RULES, rollout="k4")
        print_verdict(Console(file=out, width=width, color_system=None), verdict)
        return out.getvalue()

    return text


def line_of(text: str, *words: str) -> list[str]:
    (found,) = [ln for ln in text.splitlines() if all(f" {w}" in f" {ln}" for w in words)]
    return found.split()


def test_a_finding_stands_on_one_line_with_its_numbers(printed) -> None:
    """Scope, metric, role, estimate, limits, margin, pairs and outcome, in this order."""
    text = printed(20)
    assert "INCONCLUSIVE" in text.splitlines()[0]
    assert "k4 is inconclusive on 20 pairs: 0 of 3 required cells are proved." in text
    assert line_of(text, "[b]odd", "task", "prove") == (
        "[b]odd task completion prove 0.0 pp −11.9 … +11.9 ≥−10.0 20 needs 118 more".split()  # noqa: SIM905
    )
    assert line_of(text, "gone", "prove")[-1] == "missing"


def test_acceptance_and_latency_follow(printed) -> None:
    """Counts, both acceptance ratios, and percentiles in milliseconds: no p99 of 20 pairs."""
    text = printed(20)
    lines = text[text.index("Speculation") :].splitlines()
    assert lines[2].split() == "all 20 80 80 of 160 50.0% 2.00 –".split()  # noqa: SIM905
    assert "1,095/1,180/–" in text


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_number_is_cut_off(printed, width) -> None:
    """A narrow terminal wraps; it never shortens a number to an ellipsis."""
    narrow = "".join(printed(20, width).split())
    assert narrow.count("…") == len(RULES.rules) + 1  # the three limits, written "a … b"


def test_nothing_at_all_still_prints(printed) -> None:
    """An empty rollout has a banner and its missing cells."""
    text = printed(0)
    assert "the rollout has no pairs" in text
    assert "Speculation" not in text
