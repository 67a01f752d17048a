"""How much a judge differs from itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from collector.contract import Generation
from evals.evaluators.base import Evaluator


@dataclass(frozen=True, slots=True)
class JudgeNoise:
    """Of the same answers, judged twice."""

    answers: int
    """Judged both times."""
    disagreeing: int
    """Answers whose two values differ."""
    mean_difference: float | None
    """Second minus first; what the judge's drift between the two would add to a comparison."""
    sd_of_one: float | None
    """Standard deviation of one judgement: √(Σ d² / 2n); its square is the variance to subtract
    from that of scores, twice from that of a difference of two."""


def measure(first: Evaluator, second: Evaluator, answers: Iterable[Generation]) -> JudgeNoise:
    """Judge each answer twice, by two samples of one judge (A/A); no answers, no numbers."""
    differences = []
    for generation in answers:
        one, other = first.score(generation), second.score(generation)
        if one is None or other is None or one.value is None or other.value is None:
            continue
        differences.append(other.value - one.value)
    n = len(differences)
    if n == 0:
        return JudgeNoise(0, 0, None, None)
    return JudgeNoise(
        answers=n,
        disagreeing=sum(d != 0 for d in differences),
        mean_difference=sum(differences) / n,
        sd_of_one=sqrt(sum(d * d for d in differences) / (2 * n)),
    )
