"""Counts of an evaluation's results."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from collector.contract import Generation, Score
from evals.evaluators.judge import cascade


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationCounts:
    """The results of one evaluation; counts are of scores unless stated otherwise."""

    generations: int
    """Generations read."""
    failed: int
    """Generations that ended in an error; the gate counts them, evaluators skip them."""
    scored: int
    unscored: int
    """Scores without a value: the metric applies, but the answer could not be judged."""
    kept: int
    """Scores that were stored before."""
    not_applicable: int
    without_text: int
    """Generations that succeeded, but whose text the collector does not have."""
    asked: int = 0
    """Scores of a cascade for which the judge was asked."""
    audited: int = 0
    """Those of them that the local model was sure of."""
    agreed: int = 0
    """Those of the audited on which the judge agrees."""
    cost_usd: float | None = None
    """Cost of the new scores together; None if no cost is known."""


@dataclass(slots=True)
class Tally:
    """Running counts; see `EvaluationCounts`."""

    generations: int = 0
    failed: int = 0
    scored: int = 0
    unscored: int = 0
    kept: int = 0
    not_applicable: int = 0
    asked: int = 0
    audited: int = 0
    agreed: int = 0
    cost_usd: float | None = None
    without_text: int = 0

    def counts(self) -> EvaluationCounts:
        """Return the counts so far."""
        return EvaluationCounts(**asdict(self))

    def count(self, generation: Generation) -> None:
        """Count a generation."""
        self.generations += 1
        if generation.error_type is not None:
            self.failed += 1
        else:
            self.without_text += generation.content is None

    def take(self, scores: Iterable[Score | None]) -> list[Score]:
        """Count a task's results, and return the scores to post."""
        posted = []
        for score in scores:
            if score is None:
                self.not_applicable += 1
                continue
            self.scored += score.value is not None
            self.unscored += score.value is None
            self._count_judge(score)
            posted.append(score)
        return posted

    def _count_judge(self, score: Score) -> None:
        label, is_audit = score.label or "", score.label in (cascade.AGREES, cascade.DISAGREES)
        self.asked += is_audit or label.startswith(cascade.UNSURE)
        self.audited += is_audit
        self.agreed += label == cascade.AGREES
        if score.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + score.cost_usd
