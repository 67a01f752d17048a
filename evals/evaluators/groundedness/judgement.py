"""What is said of an answer against its passages, sentence by sentence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.features import Reading, matrix, read
from evals.evaluators.groundedness.model import Model, shipped
from evals.evaluators.groundedness.passages import Passages, Span
from evals.evaluators.groundedness.sentences import Sentence, sentences_of

MAX_ANSWER_CHARACTERS = 50_000
"""A longer answer is judged by its beginning."""
MAX_CONTEXT_CHARACTERS = 1_000_000
_MAX_NAMED = 4
_MAX_WORD = 40


@dataclass(frozen=True, slots=True)
class SentenceJudgement:
    """How likely one sentence is unsupported, why, and the stretch that is nearest to it."""

    sentence: Sentence
    probability: float
    reason: str
    nearest: Span | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """How likely an answer says something that its passages do not support."""

    probability: float
    value: float
    """The score: 1 − the probability, sharpened so that 0.5 is the threshold."""
    sentences: tuple[SentenceJudgement, ...]


def judge(answer: str, passages: Passages, model: Model | None = None) -> Judgement | None:
    """Judge an answer, `None` where it has no sentence; the worst sentence decides."""
    model = model or shipped()
    text = answer[:MAX_ANSWER_CHARACTERS]
    sentences = sentences_of(text)
    readings = read(text, sentences, passages, model.rarity)
    if not readings:
        return None
    probabilities = model.probability(model.checked(matrix(readings)))
    return judgement(text, readings, passages, probabilities, model.value)


def judgement(
    text: str,
    readings: Sequence[Reading],
    passages: Passages,
    probabilities: NDArray[np.float64],
    value: Callable[[float], float],
) -> Judgement:
    """Return what the sentences' probabilities say of the answer; the worst sentence decides."""
    worst = float(probabilities.max())
    judged = [
        SentenceJudgement(r.sentence, p, _reason(r, text), passages.span(r.start, r.end))
        for r, p in zip(readings, probabilities.tolist(), strict=True)
    ]
    return Judgement(worst, value(worst), tuple(judged))


@lru_cache(maxsize=16)
def indexed(texts: tuple[str, ...]) -> Passages:
    """Return the index of some passages, kept for the answers that rest on the same ones."""
    return Passages(texts)


def _reason(reading: Reading, text: str) -> str:
    """Say what stands in the sentence and not in the passages, the hardest fact first."""
    found = reading.differences
    numbers = [text[t.start : t.end] for t in reading.absent if t.form.is_number]
    names = [text[t.start : t.end] for t in reading.absent if t.is_name]
    others = [text[t.start : t.end] for t in reading.absent]
    negated = {s.kind for s in reading.splices} & {"added_negation", "dropped_negation"}
    reasons = (
        numbers and f"{_listed(numbers)} not in the passages",
        _instead(found.numbers_swapped),
        names and f"{_listed(names)} not in the passages",
        _instead(found.names_swapped) or _instead(found.antonyms),
        negated and "negated otherwise than in the passages",
        others and f"{_listed(others)} not in the passages",
    )
    return next((reason for reason in reasons if reason), "not said so in the passages")


def _listed(words: Sequence[str]) -> str:
    return ", ".join(word[:_MAX_WORD] for word in list(dict.fromkeys(words))[:_MAX_NAMED])


def _instead(pairs: Sequence[tuple[str, str]]) -> str:
    """Say which words stand in other words' places."""
    return ", ".join(f"{ours} where the passages have {theirs}" for ours, theirs in pairs[:2])
