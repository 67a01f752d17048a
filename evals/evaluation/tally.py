"""Counts of an evaluation's results."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from collector.contract import Generation, Score


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


@dataclass(slots=True)
class Tally:
    """Running counts; see `EvaluationCounts`."""

    generations: int = 0
    failed: int = 0
    scored: int = 0
    unscored: int = 0
    kept: int = 0
    not_applicable: int = 0
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
            posted.append(score)
        return posted
