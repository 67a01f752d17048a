"""Scores from OpenInference annotations and evaluations on spans.

An annotation judges the span that has it. An evaluation judges the one span that its span links to,
or its own span if that is a generation without links. Parent spans are ignored.
"""

from collections.abc import Iterator
from typing import NamedTuple

from collector.contract import AttributeValue, Score, Span, is_generation
from collector.contract.names import is_name
from collector.dialects.messages import Tree, flattened, subtree
from collector.dialects.openinference import KIND

_ANNOTATION, _EVALUATION = ("annotations", "annotation"), ("evaluations", "evaluation")

_GROUPS = ("annotations.", "evaluations.")


class _Target(NamedTuple):
    trace_id: str
    span_id: str


def scores(span: Span) -> tuple[Score, ...]:
    """Return the scores in the span; skip those without a name or an unambiguous target."""
    sent = span.attributes
    if (
        KIND not in sent
        and "annotations.0.annotation.name" not in sent
        and "evaluations.0.evaluation.name" not in sent
    ):
        return ()
    if not any(name.startswith(_GROUPS) for name in sent):
        return ()
    return (
        *_scores(span, *_ANNOTATION, target=_annotated(span)),
        *_scores(span, *_EVALUATION, target=_evaluated(span)),
    )


def _annotated(span: Span) -> _Target | None:
    if KIND in span.attributes or is_generation(span):
        return _Target(span.trace_id, span.span_id)
    return _linked(span)  # a span that only transports annotations


def _evaluated(span: Span) -> _Target | None:
    if not span.links and (span.attributes.get(KIND) == "LLM" or is_generation(span)):
        return _Target(span.trace_id, span.span_id)
    return _linked(span)


def _linked(span: Span) -> _Target | None:
    if len(span.links) != 1:
        return None
    return _Target(span.links[0].trace_id, span.links[0].span_id)


def _scores(span: Span, group: str, item: str, *, target: _Target | None) -> Iterator[Score]:
    if target is None:
        return
    for tree in flattened(span.attributes, group):
        feedback = subtree(tree, item)
        metric = _text(feedback, "name")
        evaluator = _text(feedback, "identifier") or _annotator(feedback)
        if metric is not None and is_name(metric) and is_name(evaluator):
            yield _score(metric, evaluator, feedback, target)


def _score(metric: str, evaluator: str, feedback: Tree, target: _Target) -> Score:
    sent = feedback.get("score")
    value = _value(sent)
    return Score(
        trace_id=target.trace_id,
        span_id=target.span_id,
        metric=metric,
        evaluator=evaluator,
        version="",  # the conventions have none
        value=value,
        label=_text(feedback, "label"),
        explanation=_text(feedback, "explanation"),
        unscored_reason=_unscored_reason(sent) if value is None else None,
    )


def _annotator(feedback: Tree) -> str:
    return (_text(feedback, "annotator_kind") or "openinference").lower()


def _value(sent: AttributeValue) -> float | None:
    if isinstance(sent, bool) or not isinstance(sent, int | float) or not 0 <= sent <= 1:
        return None
    return float(sent)


def _unscored_reason(sent: AttributeValue) -> str:
    if sent is None:
        return "no score was sent; wanted a number in [0, 1]"
    if isinstance(sent, bool) or not isinstance(sent, int | float):
        return f"the score sent is of type {type(sent).__name__}; wanted a number in [0, 1]"
    return f"the score sent is {sent:g}; wanted a number in [0, 1], so scale it before sending"


def _text(feedback: Tree, name: str) -> str | None:
    value = feedback.get(name)
    return value if isinstance(value, str) and value else None
