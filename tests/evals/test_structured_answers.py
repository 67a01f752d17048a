"""Validity of answers by cohort, load and arm, from scores to the report."""

import io
import re
from dataclasses import replace

from rich.console import Console

from collector.contract import Arm
from evals import policy
from evals.evaluation.evaluate import evaluate_rollout
from evals.evaluation.scoring import Choice
from evals.evidence.structured_answers import structured_answers
from evals.report.terminal import print_verdict
from evals.source import judge


def answered(side, number: int, *, broken: bool) -> dict[str, object]:
    """Return a side that is valid or breaks at its fortieth character of a hundred and more."""
    fault = {
        "label_schema_validity": "not_json",
        "fault_at_schema_validity": 40 + number,
        "fault_of_schema_validity": 100,
    }
    valid = {"label_schema_validity": "valid"}
    judged = {"score_schema_validity": float(not broken)} | (fault if broken else valid)
    return {**side(), **judged}


def test_valid_answers_are_counted_by_cohort_load_and_arm(evidence_of, side) -> None:
    """With the fault and its place; loads of less than a twentieth are not listed."""
    rows = [
        {
            "prompt_id": f"p{i:03}",
            "cohort": "json" if i % 2 else "tool_call",
            "baseline": answered(side, i, broken=False) | {"concurrency": 1 if i < 20 else 9},
            "candidate": answered(side, i, broken=i >= 30)
            | {"concurrency": 3 if i == 0 else 1 if i < 20 else 9},
        }
        for i in range(40)
    ]
    found = structured_answers(evidence_of(rows))
    said = [
        (one.cohort, one.in_flight, one.baseline.invalid, one.candidate.judged,
         one.candidate.invalid)
        for one in found
    ]  # fmt: skip
    assert said == [
        (None, None, 0, 40, 10),
        (None, (1, 1), 0, 19, 0),
        (None, (8, 15), 0, 20, 10),
        ("json", None, 0, 20, 5),
        ("json", (1, 1), 0, 10, 0),
        ("json", (8, 15), 0, 10, 5),
        ("tool_call", None, 0, 20, 5),
        ("tool_call", (1, 1), 0, 9, 0),
        ("tool_call", (8, 15), 0, 10, 5),
    ]
    broken = found[2].candidate
    assert broken.faults == {"not_json": 10}
    assert (broken.position_p25, broken.position_p50, broken.position_p75) == (72.25, 74.5, 76.75)
    assert broken.share_p50 == 0.745
    assert found[2].baseline.position_p50 is None


def test_failed_and_unjudged_answers_have_no_validity(evidence_of, side) -> None:
    """They are no valid answers, and no invalid ones."""
    failed = {**side(), "error_type": "timeout", "score_schema_validity": None}
    rows = [{"prompt_id": "p", "baseline": failed, "candidate": side()}]
    assert structured_answers(evidence_of(rows)) == ()


SCHEMA = '{"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}'
RULES = policy.parse(
    "version: 1\nname: p\nprove: [{metric: failures, stat: diff, max: 0.3, scope: pooled}]\n",
    "p.yaml",
)


def test_a_report_says_where_answers_of_a_real_collector_break(
    client, generation_of, otlp_of
) -> None:
    """From the answers' texts, by way of scores and pairs, to the lines that a user reads."""
    made = [
        generation_of(
            number,
            answer='{"city": "Bonn"' if breaks else '{"city": "Bonn"}',
            output_schema=SCHEMA,
            rollout="k4",
            arm=arm,
            cohort="json",
            prompt_id=f"p{number // 2}",
            repeat=0,
            concurrency=8,
            output_tokens=5,
        )
        for number in range(2, 22)
        for arm in [Arm.CANDIDATE if number % 2 else Arm.BASELINE]
        for breaks in [arm is Arm.CANDIDATE and number > 12]
    ]
    client.post_traces(otlp_of(made), content_type="application/json")
    evaluate_rollout(client, "k4", choice=Choice(names=("json-schema",)))
    verdict = judge(client, "k4", RULES)
    pool, cohort = verdict.structured_answers
    assert (pool.cohort, cohort.cohort) == (None, "json")
    assert replace(pool, cohort="json") == cohort
    assert (pool.baseline.judged, pool.baseline.invalid) == (10, 0)
    assert (pool.candidate.judged, pool.candidate.faults) == (10, {"not_json": 5})
    assert (pool.candidate.position_p50, pool.candidate.share_p50) == (15, 1.0)
    out = io.StringIO()
    print_verdict(Console(file=out, width=200, color_system=None), verdict)
    lines = [re.split(r" {2,}", line.strip()) for line in out.getvalue().splitlines()]
    assert ["json", "any", "100.0% of 10", "–", "50.0% of 10 (5 no JSON)", "15 (15–15), 100%"] in (
        lines
    )
