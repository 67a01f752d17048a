"""Measure how much a judge disagrees with itself (A/A)."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from collector.contract import Generation
from evals.evaluators.base import Evaluator


@dataclass(frozen=True, slots=True)
class JudgeNoise:
    """Differences between two judgements of the same answers."""

    answers: int
    """Answers that were scored both times."""
    disagreeing: int
    """Answers whose two values differ."""
    mean_difference: float | None
    """Mean of second minus first: the bias that the judge's drift would add to a comparison."""
    sd_of_one: float | None
    """Standard deviation of one judgement: √(Σ d² / 2n). Subtract its square from the variance of
    scores, and twice its square from the variance of a difference of two scores."""


def measure(first: Evaluator, second: Evaluator, answers: Iterable[Generation]) -> JudgeNoise:
    """Score each answer with two samples of one judge (A/A); without answers the rest is None."""
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
