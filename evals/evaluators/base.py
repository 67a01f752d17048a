"""What an evaluator is, and what it may say of a generation."""

from typing import Protocol

from collector.contract import Generation, Score


class Evaluator(Protocol):
    """Scores one metric of one generation.

    Deterministic: the same generation always has the same score under one `version`. An evaluator
    owns whatever it opens and releases it in `close`, which may be called twice.
    """

    @property
    def name(self) -> str:
        """Stable name, as stored with each score."""

    @property
    def version(self) -> str:
        """Changes whenever a score could."""

    @property
    def metric(self) -> str:
        """The metric it scores."""

    def score(self, generation: Generation) -> Score | None:
        """Return the score of an answer that arrived.

        `None` where the metric does not apply (nothing was recorded to judge the answer against);
        a score with `unscored_reason` where it applies and cannot be judged. Never raises for what
        a model or a workload wrote.
        """

    def close(self) -> None:
        """Release what was opened."""


def scored(
    evaluator: Evaluator,
    generation: Generation,
    value: float,
    *,
    label: str | None = None,
    explanation: str | None = None,
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
    )


def unscored(evaluator: Evaluator, generation: Generation, reason: str) -> Score:
    """Return a score without a value, with the reason why there is none."""
    return Score(
        trace_id=generation.trace_id,
        span_id=generation.span_id,
        metric=evaluator.metric,
        evaluator=evaluator.name,
        version=evaluator.version,
        unscored_reason=reason,
    )
