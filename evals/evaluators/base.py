"""What an evaluator is, and what it may say of a generation."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Protocol

from collector.contract import Generation, Score, ScoredSpan


class Need(StrEnum):
    """What a generation must carry for an evaluator to apply."""

    CONTEXT = "context"
    REFERENCE = "reference"
    SCHEMA = "schema"
    TOOLS = "tools"
    BASELINE = "baseline"
    """The baseline's answer to the same prompt: see `PairEvaluator`."""


class Signed(Protocol):
    """What signs a score."""

    @property
    def name(self) -> str:
        """Stable name, as stored with each score."""

    @property
    def version(self) -> str:
        """Changes whenever a score could."""

    @property
    def metric(self) -> str:
        """The metric it scores."""

    @property
    def needs(self) -> AbstractSet[Need]:
        """What it cannot do without; it says nothing of a generation that lacks any."""

    def close(self) -> None:
        """Release what was opened; may be called twice."""


class Evaluator(Signed, Protocol):
    """Scores one metric of one generation.

    Deterministic: the same generation always has the same score under one `version`. An evaluator
    owns whatever it opens and releases it in `close`.
    """

    def score(self, generation: Generation) -> Score | None:
        """Return the score of an answer that arrived.

        `None` where the metric does not apply (nothing was recorded to judge the answer against);
        a score with `unscored_reason` where it applies and cannot be judged. Never raises for what
        a model or a workload wrote.
        """


class ComparingEvaluator(Evaluator, Protocol):
    """An evaluator that sees more of an answer beside the other arm's to the same prompt.

    Answers that have one are scored by `score_beside`, both of them, in the place of `score`; and
    again so where the other one arrives later. The arms must not matter: with the answers exchanged
    the scores are the same, exchanged.
    """

    @property
    def version_beside(self) -> str:
        """The version of scores by `score_beside`, other than `version`."""

    def score_beside(self, generation: Generation, other: Generation) -> Score | None:
        """Return the first answer's score, under the rules of `Evaluator.score`."""


class PairEvaluator(Signed, Protocol):
    """Scores a candidate's answer against the baseline's to the same prompt and repeat."""

    def score_pair(self, candidate: Generation, baseline: Generation) -> Score | None:
        """Return the candidate's score, under the rules of `Evaluator.score`."""


AnyEvaluator = Evaluator | ComparingEvaluator | PairEvaluator


def scored(
    evaluator: Signed,
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
    evaluator: Signed, generation: Generation, reason: str, *, cost_usd: float | None = None
) -> Score:
    """Return a score without a value, with the reason why there is none."""
    return Score(
        trace_id=generation.trace_id,
        span_id=generation.span_id,
        metric=evaluator.metric,
        evaluator=evaluator.name,
        version=evaluator.version,
        unscored_reason=reason,
        cost_usd=cost_usd,
    )
