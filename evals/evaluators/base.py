"""The protocols of evaluators, and the constructors of their scores."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Protocol

from collector.contract import Generation, Score, ScoredSpan


class Need(StrEnum):
    """Recorded content that an evaluator requires of a generation."""

    CONTEXT = "context"
    REFERENCE = "reference"
    SCHEMA = "schema"
    TOOLS = "tools"
    BASELINE = "baseline"
    """The baseline's answer to the same prompt: see `PairEvaluator`."""


class EvaluatorMembers(Protocol):
    """The members that every evaluator has."""

    @property
    def name(self) -> str:
        """Stable name, stored with each score."""

    @property
    def version(self) -> str:
        """Version, stored with each score; changes whenever a score could change."""

    @property
    def metric(self) -> str:
        """The metric it scores."""

    @property
    def needs(self) -> AbstractSet[Need]:
        """Required content; a generation that lacks any of it gets no score."""

    def close(self) -> None:
        """Release resources; may be called twice."""


class Evaluator(EvaluatorMembers, Protocol):
    """Scores one metric of one generation.

    Deterministic: under one `version`, the same generation always gets the same score. An
    evaluator owns the resources that it opens and releases them in `close`.
    """

    def score(self, generation: Generation) -> Score | None:
        """Score the answer of a generation that succeeded.

        Returns `None` if the metric does not apply, because nothing was recorded to judge the
        answer against. Returns a score with `unscored_reason` if the metric applies but the answer
        cannot be judged. Never raises because of text that a model or a workload wrote.
        """


class ComparingEvaluator(Evaluator, Protocol):
    """An evaluator that judges an answer better beside the other arm's answer to the same prompt.

    If both arms answered, both answers are scored by `score_beside` instead of `score`; an answer
    that `score` has scored already is scored again when the other one arrives. The result must not
    depend on which arm is which: swapping the two answers swaps the two scores.
    """

    @property
    def version_beside(self) -> str:
        """Version of scores by `score_beside`; differs from `version`."""

    def score_beside(self, generation: Generation, other: Generation) -> Score | None:
        """Score the answer of `generation`, under the rules of `Evaluator.score`."""


class PairEvaluator(EvaluatorMembers, Protocol):
    """Scores a candidate's answer against the baseline's to the same prompt and repeat."""

    def score_pair(self, candidate: Generation, baseline: Generation) -> Score | None:
        """Score the candidate's answer, under the rules of `Evaluator.score`."""


AnyEvaluator = Evaluator | ComparingEvaluator | PairEvaluator


def scored(
    evaluator: EvaluatorMembers,
    generation: Generation,
    value: float,
    *,
    label: str | None = None,
    explanation: str | None = None,
    spans: Sequence[ScoredSpan] | None = None,
    cost_usd: float | None = None,
) -> Score:
    """Return a score with a value."""
    return Score(
        trace_id=generation.trace_id,
        span_id=generation.span_id,
        metric=evaluator.metric,
        evaluator=evaluator.name,
        version=evaluator.version,
        value=value,
        label=label,
        explanation=explanation,
        spans=None if spans is None else tuple(spans),
        cost_usd=cost_usd,
    )


def unscored(
    evaluator: EvaluatorMembers,
    generation: Generation,
    reason: str,
    *,
    cost_usd: float | None = None,
) -> Score:
    """Return a score that has no value, only the reason."""
    return Score(
        trace_id=generation.trace_id,
        span_id=generation.span_id,
        metric=evaluator.metric,
        evaluator=evaluator.name,
        version=evaluator.version,
        unscored_reason=reason,
        cost_usd=cost_usd,
    )
