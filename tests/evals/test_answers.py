"""A verdict's answers: may it ship, for which cohorts, and how many more prompts it needs."""

import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from collector.contract import MayShip, Outcome, Reason, Verdict
from evals import policy
from evals.gate import decide
from evals.report.formats import to_junit, to_markdown
from evals.report.terminal import print_verdict

TASKS = "{metric: task_completion, stat: diff, min: -0.05, scope: cohort}"
TAIL = "{metric: e2e, stat: p95_ratio, max: 1.25, scope: cohort}"
FASTER = "{metric: e2e, stat: geomean_ratio, max: 1.00, scope: pooled}"


def a_policy(*prove: str, guard: tuple[str, ...] = (), extra: str = "", report=()):
    lines = ["version: 1", "name: test", extra]
    for role, rules in (("prove", prove), ("guard", guard), ("report", report)):
        lines += [f"{role}:", *(f"  - {rule}" for rule in rules)] if rules else []
    return policy.parse("\n".join(lines), "test.yaml")


@pytest.fixture
def rows_of(side):
    """Give a function that makes pairs of cohorts of these sizes, with repeats of each prompt."""

    def make(sizes: dict[str, int], repeats: int = 1) -> list[dict[str, Any]]:
        rng, rows = np.random.default_rng(3), []
        for cohort, size in sizes.items():
            for i in range(size):
                seconds = rng.lognormal(0, 0.2)
                rows.append(
                    {
                        "prompt_id": f"{cohort}{i // repeats:05}",
                        "repeat": i % repeats,
                        "cohort": cohort,
                        "baseline": side(e2e_s=seconds, score_task_completion=1.0),
                        "candidate": side(
                            e2e_s=seconds * 0.7 * rng.lognormal(0, 0.05), score_task_completion=1.0
                        ),
                    }
                )
        return rows

    return make


def fail(rows: list[dict[str, Any]], cohort: str, count: int) -> None:
    """Let the candidate's first answers of a cohort be wrong."""
    for row in [row for row in rows if row["cohort"] == cohort][:count]:
        row["candidate"] = row["candidate"] | {"score_task_completion": 0.0}


def answers_of(verdict: Verdict) -> dict[str, MayShip]:
    return {one.cohort: one.answer for one in verdict.cohorts}


def printed(verdict: Verdict, width: int = 200) -> str:
    out = io.StringIO()
    print_verdict(Console(file=out, width=width, color_system=None), verdict)
    return out.getvalue()


def test_each_cohort_gets_its_own_answer(rows_of, evidence_of) -> None:
    """Yes, no, and unknown with the missing evidence, in every format."""
    rows = rows_of({"chat": 200, "code": 200, "rare": 40})
    fail(rows, "code", 80)
    verdict = decide(evidence_of(rows), a_policy(FASTER, TASKS), rollout="r")
    assert answers_of(verdict) == {"chat": MayShip.YES, "code": MayShip.NO, "rare": MayShip.UNKNOWN}
    code, rare = verdict.cohorts[1:]
    assert code.because == "beyond the margin: share of completed tasks"
    (open_,) = [f for f in verdict.findings if f.cohort == "rare"]
    assert rare.because == "share of completed tasks (too few pairs)"
    assert rare.prompts_needed == open_.n_needed * 440 // 40
    for text in (printed(verdict), to_markdown(verdict), to_junit(verdict)):
        assert text.index("May it ship: no.") < text.index("chat: yes") < text.index("code: no")
        assert "rare: unknown, share of completed tasks (too few pairs); about 3,025 more" in text


def test_a_cohort_without_cells_is_not_judged_by_itself(rows_of, evidence_of) -> None:
    """A policy of pooled cells says nothing of a cohort."""
    verdict = decide(evidence_of(rows_of({"chat": 100})), a_policy(FASTER), rollout="r")
    (chat,) = verdict.cohorts
    assert (verdict.outcome, chat.answer) == (Outcome.PASS, MayShip.UNKNOWN)
    assert chat.because == "not judged by itself: the policy has no cell of it"


@pytest.mark.parametrize("repeats", [1, 2])
def test_the_largest_need_is_in_prompts_of_the_workload(rows_of, evidence_of, repeats) -> None:
    """A cohort's pairs ÷ its share, ÷ the repeats of each prompt."""
    rows = rows_of({"chat": 180, "rare": 20}, repeats)
    verdict = decide(evidence_of(rows), a_policy(TASKS), rollout="r")
    (finding,) = [f for f in verdict.findings if f.cohort == "rare"]
    assert finding.n_needed is not None
    assert verdict.prompts_needed == -(-finding.n_needed * 10 // repeats)
    assert f"about {verdict.prompts_needed:,} more workload prompts" in printed(verdict)


def test_missing_scores_need_no_prompts(rows_of, evidence_of) -> None:
    """What evaluation would settle is named, and no prompts are asked for."""
    rows = rows_of({"chat": 100})
    for row in rows:
        for arm in ("baseline", "candidate"):
            row[arm] = row[arm] | {"score_task_completion": None}
    verdict = decide(evidence_of(rows), a_policy(TASKS), rollout="r")
    assert (verdict.outcome, verdict.prompts_needed) == (Outcome.INCONCLUSIVE, None)


def test_a_stray_cohort_is_set_aside_and_named(rows_of, evidence_of) -> None:
    """Three pairs that nobody planned hold nothing up; named by a rule or a key of 0, they do."""
    evidence = evidence_of(rows_of({"chat": 200, "stray": 3}))
    verdict = decide(evidence, a_policy(TASKS), rollout="r")
    assert verdict.outcome is Outcome.PASS
    assert answers_of(verdict) == {"chat": MayShip.YES}
    assert "stray (3 pairs)" in verdict.summary
    assert verdict.pairs == 203
    kept = decide(evidence, a_policy(TASKS, extra="cohorts: {set_aside_below: 0}"), rollout="r")
    listed = a_policy(TASKS.replace("cohort}", "cohort, cohorts: [chat, stray]}"))
    for strict in (kept, decide(evidence, listed, rollout="r")):
        assert strict.outcome is Outcome.INCONCLUSIVE
        assert not strict.set_aside


def test_many_small_cohorts_are_no_strays(rows_of, evidence_of) -> None:
    """Traffic that consists of small cohorts is not waved through."""
    sizes = {"chat": 100} | {f"user{i}": 3 for i in range(10)}
    verdict = decide(evidence_of(rows_of(sizes)), a_policy(TASKS), rollout="r")
    assert (verdict.outcome, verdict.set_aside) == (Outcome.INCONCLUSIVE, ())


def test_one_estimate_at_two_margins_is_one_line(rows_of, evidence_of) -> None:
    """A proof and a guard of the same numbers share a reason and a row, with both outcomes."""
    rows = rows_of({"chat": 200})
    fail(rows, "chat", 6)
    loose = TASKS.replace("-0.05", "-0.10")
    verdict = decide(evidence_of(rows), a_policy(loose, guard=(TASKS,)), rollout="r")
    assert verdict.outcome is Outcome.PASS
    (reason,) = verdict.reasons
    assert (
        "prove margin ≥ −10.0 pp: pass; guard margin ≥ −5.0 pp: inconclusive: the limits" in reason
    )
    (row,) = [line for line in printed(verdict).splitlines() if "prove, guard" in line]
    assert "≥−10.0, ≥−5.0" in row
    assert "Undecided: share of completed tasks in `chat`" in verdict.summary


def test_a_pass_names_what_is_reported_beyond_its_margin(rows_of, evidence_of) -> None:
    """A reported cell decides nothing, and is not hidden either."""
    rows = rows_of({"chat": 200})
    fail(rows, "chat", 80)
    verdict = decide(evidence_of(rows), a_policy(FASTER, report=(TASKS,)), rollout="r")
    assert verdict.outcome is Outcome.PASS
    assert "Reported beyond the margin: share of completed tasks, in `chat`" in verdict.summary
    assert len(verdict.reported_failing) == 1


def test_too_close_is_not_too_wide(rows_of, evidence_of) -> None:
    """Equal arms stand on a margin of 1; an estimate well within its margin has too few pairs."""
    rows = rows_of({"chat": 200})
    fail(rows, "chat", 6)
    for i, row in enumerate(rows):
        factor = (1.02 + i * 1e-5) ** (1 if i % 2 else -1)
        row["candidate"] = row["candidate"] | {"e2e_s": row["baseline"]["e2e_s"] * factor}
    verdict = decide(evidence_of(rows), a_policy(FASTER, TASKS), rollout="r")
    close, wide = verdict.findings
    assert (close.reason, close.n_needed) == (Reason.TOO_CLOSE, None)
    assert wide.reason is Reason.TOO_FEW
    assert wide.n_needed is not None
    assert "the limits are too wide for the margin; needs about" in wide.message


def test_the_assumption_names_the_stretch(rows_of, evidence_of) -> None:
    """How long harm may last, and what a longer stretch would need: 25 · ln .05 ÷ ln .95 pairs."""
    evidence = evidence_of(rows_of({"chat": 200}))
    said = decide(evidence, a_policy(TASKS), rollout="r").assumption
    assert "harm that lasts up to 1 request (" in said
    assert "harm to 25 requests in a row would need at least 1,461 unharmed pairs" in said
    longer = a_policy(TASKS, extra="dependence: {stretch: 40}")
    assert "up to 40 requests (" in decide(evidence, longer, rollout="r").assumption
