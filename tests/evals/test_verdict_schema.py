"""The published schema of a verdict."""

import json
from pathlib import Path

import jsonschema_rs
import pytest

from collector.contract import to_document
from evals import policy
from evals.gate import decide
from evals.report.terminal import to_json
from evals.verdict_schema import verdict_schema

PUBLISHED = Path(__file__).parent.parent.parent / "docs" / "verdict.schema.json"


@pytest.fixture
def document(evidence_of, side):
    """Give the document of a verdict with findings of every outcome but fail."""
    rows = [
        {
            "prompt_id": f"p{i:03}",
            "cohort": "chat",
            "baseline": side(e2e_s=1 + i / 100, score_task_completion=1.0),
            "candidate": side(e2e_s=0.5 + i / 150, score_task_completion=1.0),
        }
        for i in range(60)
    ]
    verdict = decide(evidence_of(rows), policy.shipped("demo"), rollout="k4")
    assert json.loads(to_json(verdict)) == to_document(verdict)
    return to_document(verdict)


def test_the_published_schema_is_current() -> None:
    """`python -m evals.verdict_schema > docs/verdict.schema.json` has been run."""
    assert PUBLISHED.read_text() == verdict_schema()


def test_a_verdict_is_valid(document) -> None:
    """The gate's output matches the schema."""
    jsonschema_rs.validate(json.loads(PUBLISHED.read_text()), document)


@pytest.mark.parametrize(
    ("key", "value"), [("outcome", "passed"), ("pairs", "many"), ("findings", None)]
)
def test_what_is_no_verdict_is_not(document, key, value) -> None:
    """An unknown outcome, words for a count, and missing findings are refused."""
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(json.loads(PUBLISHED.read_text()), document | {key: value})
