"""Judgements on spans become scores of the span that was judged."""

from typing import Any

import pytest

from collector.contract import AttributeValue, Score, Span, SpanLink
from collector.dialects import scores

JUDGED = SpanLink(trace_id="c" * 32, span_id="d" * 16)
OTHER = SpanLink(trace_id="e" * 32, span_id="f" * 16)


def span_of(attributes: dict[str, AttributeValue], **fields: Any) -> Span:
    return Span(
        trace_id="a" * 32,
        span_id="b" * 16,
        name="span",
        start_unix_ns=1,
        end_unix_ns=2,
        attributes=attributes,
        **fields,
    )


def feedback(group: str, item: str, **fields: AttributeValue) -> dict[str, AttributeValue]:
    return {f"{group}.0.{item}.{name}": value for name, value in fields.items()}


def test_an_annotation_is_of_the_span_that_carries_it() -> None:
    """Every field is read, a link to another span changes nothing."""
    sent = feedback(
        "annotations",
        "annotation",
        name="groundedness",
        score=1,
        label="grounded",
        explanation="every claim has a source",
        annotator_kind="LLM",
        identifier="judge-v2",
    )
    span = span_of({"openinference.span.kind": "LLM", **sent}, links=(OTHER,))
    assert scores(span) == (
        Score(
            trace_id="a" * 32,
            span_id="b" * 16,
            metric="groundedness",
            evaluator="judge-v2",
            version="",
            value=1.0,
            label="grounded",
            explanation="every claim has a source",
        ),
    )


def test_an_evaluation_is_of_the_one_span_that_is_linked_to() -> None:
    """A carrier span judges the span it links to; the kind of judge is used if it has no name."""
    sent = feedback(
        "evaluations", "evaluation", name="correctness", score=0.25, annotator_kind="HUMAN"
    )
    span = span_of(
        {"openinference.span.kind": "EVALUATOR", **sent}, parent_span_id="9" * 16, links=(JUDGED,)
    )
    assert scores(span) == (
        Score(
            trace_id="c" * 32,
            span_id="d" * 16,
            metric="correctness",
            evaluator="human",
            version="",
            value=0.25,
        ),
    )


@pytest.mark.parametrize("links", [(), (JUDGED, OTHER)])
def test_an_evaluator_that_links_to_no_one_span_judges_nothing(links: tuple[SpanLink, ...]) -> None:
    """A parent does not identify the judged span, and neither do two links."""
    sent = feedback("evaluations", "evaluation", name="correctness", score=0.25)
    span = span_of(
        {"openinference.span.kind": "EVALUATOR", **sent}, parent_span_id="9" * 16, links=links
    )
    assert scores(span) == ()


@pytest.mark.parametrize(
    ("score", "reason"),
    [
        (4, "the score sent is 4; wanted a number in [0, 1], so scale it before sending"),
        (-0.5, "the score sent is -0.5; wanted a number in [0, 1], so scale it before sending"),
        (
            float("nan"),
            "the score sent is nan; wanted a number in [0, 1], so scale it before sending",
        ),
        ("0.5", "the score sent is of type str; wanted a number in [0, 1]"),
        (True, "the score sent is of type bool; wanted a number in [0, 1]"),
        (None, "no score was sent; wanted a number in [0, 1]"),
    ],
)
def test_a_score_outside_the_range_is_not_made_into_one(score: AttributeValue, reason: str) -> None:
    """The label is kept, the value is absent, and the reason says what was seen and wanted."""
    sent = feedback("annotations", "annotation", name="stars", score=score, label="good")
    (found,) = scores(span_of({"gen_ai.operation.name": "chat", **sent}))
    assert (found.value, found.unscored_reason, found.label) == (None, reason, "good")


def test_a_carrier_that_is_no_operation_lends_its_annotations_to_what_it_links_to() -> None:
    """A span made for nothing else than to carry a judgement is not what was judged."""
    sent = feedback("annotations", "annotation", name="stars", score=1)
    (found,) = scores(span_of(dict(sent), links=(JUDGED,)))
    assert (found.trace_id, found.span_id) == (JUDGED.trace_id, JUDGED.span_id)


def test_feedback_without_a_name_is_left_out() -> None:
    """There is no metric to store it under."""
    assert (
        scores(
            span_of(
                {"openinference.span.kind": "LLM", **feedback("annotations", "annotation", score=1)}
            )
        )
        == ()
    )
