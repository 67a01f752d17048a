"""The evaluators: one conformance suite for all, then what each one judges."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from collector.contract import Content, Generation, Score
from evals.evaluators import Evaluator, Groundedness, SchemaValidity, TaskCompletion, shipped

GenerationOf = Callable[..., Generation]

PASSAGES = (
    "Order #KD-48: Ada Berg bought the Lumen kettle on 12 May for EUR 48.",
    "Parcel #ZL-17 left Bonn with Arrow on 3 June and is due in Ghent on 9 June.",
)
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"enum": ["refund"]}, "amount": {"type": "integer"}},
        "required": ["name", "amount"],
    }
)
APPLIES: dict[str, dict[str, Any]] = {
    "groundedness": {"context": PASSAGES},
    "task_completion": {"reference": "hello"},
    "schema_validity": {"output_schema": SCHEMA},
}


@pytest.fixture(params=[Groundedness, SchemaValidity, TaskCompletion])
def evaluator(request: pytest.FixtureRequest) -> Iterator[Evaluator]:
    made: Evaluator = request.param()
    yield made
    made.close()


def value(score: Score | None) -> tuple[float | None, str | None]:
    assert score is not None
    return score.value, score.explanation or score.unscored_reason


# --- every evaluator


def test_says_nothing_of_what_it_has_nothing_to_judge_against(evaluator, generation_of) -> None:
    """Without context, reference or schema, or without content at all, there is no score."""
    assert evaluator.score(generation_of(answer="hello")) is None
    assert evaluator.score(generation_of(content=None)) is None


def test_an_answer_that_was_not_recorded_is_unscored(evaluator, generation_of) -> None:
    """Without the answer's text the metric applies, and there is no number."""
    applies = APPLIES[evaluator.metric]
    not_an_answer = '[{"parts": [{"type": "text"}]}]'
    for output in (None, "no JSON", "[]", '[{"role": "user"}]', not_an_answer, "[" * 100_000):
        content = Content(output_messages=output, **applies)
        score = evaluator.score(generation_of(content=content))
        assert score is not None
        assert (score.value, score.unscored_reason) == (None, "the answer's text was not recorded")


def test_is_deterministic_and_signs_its_scores(evaluator, generation_of) -> None:
    """The same generation has the same score, under the evaluator's name and the span's ids."""
    generation = generation_of(7, "hello", **APPLIES[evaluator.metric])
    score = evaluator.score(generation)
    assert score == evaluator.score(generation)
    assert score is not None
    assert (score.trace_id, score.span_id) == (generation.trace_id, generation.span_id)
    assert (score.metric, score.evaluator, score.version) == (
        evaluator.metric,
        evaluator.name,
        evaluator.version,
    )


@pytest.mark.parametrize("answer", ["", "   ", "\x00", "[" * 50_000, "9" * 5_000, "ſ\ud7ff" * 99])
def test_never_raises_for_what_a_model_wrote(evaluator, generation_of, answer) -> None:
    """Odd answers are scored or unscored, never an exception, and never right."""
    score = evaluator.score(generation_of(answer=answer, **APPLIES[evaluator.metric]))
    assert score is not None
    assert score.value is None or score.value < 0.5


def test_one_shipped_evaluator_a_metric() -> None:
    """The shipped set covers each metric once."""
    metrics = sorted(e.metric for e in shipped())
    assert metrics == sorted([*APPLIES, "format_intact", "parity"])


# --- task completion


@pytest.mark.parametrize(
    ("reference", "answer", "wanted"),
    [
        ("Hello  there,\nyou", " Hello there, you\n", (1.0, None)),
        ('"quoted"', "quoted", (1.0, None)),
        ("42", "42", (1.0, None)),
        ({"kind": "exact", "text": "a b"}, "a c", (0.0, "word 2: wanted 'b', got 'c'")),
        ({"kind": "exact", "text": "a b"}, "a", (0.0, "word 2: wanted 'b', got the end")),
        ({"kind": "exact", "text": "a b"}, "A b", (0.0, "word 1: wanted 'a', got 'A'")),
        ({"kind": "json", "value": {"a": 1, "b": [1, 2]}}, '{"b": [1, 2.0], "a": 1}', (1.0, None)),
        ({"kind": "json", "value": 0.3}, "```json\n0.30000000000000004\n```", (1.0, None)),
        (
            {"kind": "json", "value": {"a": 1}},
            '{"a": true}',
            (0.0, "answer.a: wanted 1, got True"),
        ),
        (
            {"kind": "json", "value": {"a": [1, 2]}},
            '{"a": [2, 1]}',
            (0.0, "answer.a[0]: wanted 1, got 2"),
        ),
        (
            {"kind": "json", "value": {"a": [1]}},
            '{"a": [1, 1]}',
            (0.0, "answer.a: wanted 1 items, got 2"),
        ),
        ({"kind": "json", "value": {"a": 1}}, "{}", (0.0, "answer.a: missing")),
        (
            {"kind": "json", "value": {"a": 1}},
            '{"a": 1, "b": 2}',
            (0.0, "answer.b: not wanted"),
        ),
        (
            {"kind": "json", "value": 2**53},
            str(2**53 + 1),
            (0.0, f"answer: wanted {2**53}, got {2**53 + 1}"),
        ),
        ({"kind": "json", "value": 1}, "NaN", (0.0, "not JSON: NaN is not JSON")),
        ({"kind": "json", "value": 1}, "1e999", (0.0, "not JSON: 1e999 is out of range")),
        (
            {"kind": "poem"},
            "a rose",
            (
                None,
                (
                    "the reference's kind is 'poem'; wanted one of exact, json, tests, stdio, qa, "
                    "number, tool_calls, actions, end_state, rubric"
                ),
            ),
        ),
        (
            {"kind": "tests", "entry_point": "f", "prelude": "", "tests": " "},
            "def f(): pass",
            (None, "the reference has no tests"),
        ),
    ],
)
def test_task_completion_compares_with_the_reference(
    generation_of, reference, answer, wanted
) -> None:
    """Text up to white space, JSON by value; the first difference is named."""
    text = reference if isinstance(reference, str) else json.dumps(reference)
    found = TaskCompletion().score(generation_of(answer=answer, reference=text))
    assert value(found) == wanted


def test_not_json_is_wrong_and_says_so(generation_of) -> None:
    """Prose instead of JSON is 0 with the parser's words."""
    reference = json.dumps({"kind": "json", "value": 1})
    found = TaskCompletion().score(generation_of(answer="one", reference=reference))
    assert found is not None
    assert (found.value, found.label) == (0.0, "JSON value: wrong")
    assert found.explanation == "not JSON: Expecting value: line 1 column 1 (char 0)"


# --- schema validity


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ('{"name": "refund", "amount": 3}', (1.0, "valid", None)),
        ('```json\n{"name": "refund", "amount": 3}\n```', (1.0, "valid", None)),
        ('{"name": "refund"}', (0.0, "invalid", 'answer: "amount" is a required property')),
        (
            '{"name": "refund", "amount": "3"}',
            (0.0, "invalid", 'amount: "3" is not of type "integer"'),
        ),
        ("refund 3", (0.0, "not_json", "Expecting value: line 1 column 1 (char 0)")),
    ],
)
def test_schema_validity(generation_of, answer, wanted) -> None:
    """The answer is valid, invalid with the path of the fault, or not JSON."""
    found = SchemaValidity().score(generation_of(answer=answer, output_schema=SCHEMA))
    assert found is not None
    assert (found.value, found.label, found.explanation) == wanted


@pytest.mark.parametrize(
    "schema",
    ["{", '{"type": "strin"}', '{"$ref": "http://127.0.0.1:9/x.json"}', '{"pattern": "("}', "3"],
)
def test_an_unusable_schema_is_unscored(generation_of, schema) -> None:
    """A schema that is invalid, or that points out of itself, judges nothing."""
    found = SchemaValidity().score(generation_of(answer="{}", output_schema=schema))
    assert found is not None
    assert found.value is None
    assert found.unscored_reason is not None
    assert found.unscored_reason.startswith("the schema is not usable: ")
