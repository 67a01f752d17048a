"""What an evaluation did, counted."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from collector.contract import Generation, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationCounts:
    """What one evaluation did; scores are counted, not generations, unless said."""

    generations: int
    """Generations looked at."""
    failed: int
    """Generations that ended in an error: the gate counts them, no evaluator does."""
    scored: int
    unscored: int
    """Answers that a metric applies to and that could not be judged."""
    kept: int
    """Scores that were already there."""
    not_applicable: int
    without_text: int
    """Generations that did not fail and of which the collector holds no text."""


@dataclass(slots=True)
class Tally:
    """Counts that grow."""

    generations: int = 0
    failed: int = 0
    scored: int = 0
    unscored: int = 0
    kept: int = 0
    not_applicable: int = 0
    without_text: int = 0

    def counts(self) -> EvaluationCounts:
        """Freeze the tally."""
        return EvaluationCounts(**asdict(self))

    def count(self, generation: Generation) -> None:
        """Count a generation that is looked at."""
        self.generations += 1
        if generation.error_type is not None:
            self.failed += 1
        else:
            self.without_text += generation.content is None

    def take(self, scores: Iterable[Score | None]) -> list[Score]:
        """Count what became of a task, and return what is to be posted."""
        posted = []
        for score in scores:
            if score is None:
                self.not_applicable += 1
                continue
            self.scored += score.value is not None
            self.unscored += score.value is None
            posted.append(score)
        return posted
