"""What is said of an answer against its passages, sentence by sentence."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.checks import excess
from evals.evaluators.groundedness.features import Reading, matrix, read
from evals.evaluators.groundedness.language import is_foreign
from evals.evaluators.groundedness.model import Calibration, Model, shipped
from evals.evaluators.groundedness.passages import Passages, Span
from evals.evaluators.groundedness.sentences import Sentence, sentences_of

MAX_ANSWER_CHARACTERS = 50_000
"""A longer answer is judged by its beginning."""
MAX_CONTEXT_CHARACTERS = 1_000_000
_MOST_INDEXES = 16
_MOST_CHARACTERS = 1_500_000
"""Of the passages whose indexes are kept: an index takes about a hundred bytes a character."""
_MAX_NAMED = 4
_MAX_WORD = 40


@dataclass(frozen=True, slots=True)
class SentenceJudgement:
    """How likely one sentence is unsupported."""

    reading: Reading
    probability: float
    instead: str | None = None
    """What the other answer of its pair says in its place, where that was compared."""

    @property
    def sentence(self) -> Sentence:
        """The sentence."""
        return self.reading.sentence

    def reason(self, answer: str) -> str:
        """Say what stands in the sentence and not in the passages."""
        return _reason(self.reading, answer)

    def nearest(self, passages: Passages) -> Span | None:
        """Return the stretch of the passages that is nearest to it."""
        return passages.span(self.reading.start, self.reading.end)


@dataclass(frozen=True, slots=True)
class Judgement:
    """How likely an answer says something that its passages do not support."""

    probability: float
    value: float
    """The score: 1 − the probability, sharpened so that 0.5 is the threshold."""
    sentences: tuple[SentenceJudgement, ...]
    shared: int | None = None
    """How many of the sentences the other answer of its pair has too, where it was compared."""

    @property
    def declines(self) -> bool:
        """Say whether it only tells what the passages do not say."""
        return all(s.sentence.is_refusal for s in self.sentences)

    @property
    def score(self) -> float:
        """The value; 1 where the answer only declines, which claims nothing."""
        return 1.0 if self.declines else self.value


@dataclass(frozen=True, slots=True)
class Judged:
    """An answer's sentences, each judged by itself."""

    text: str
    readings: Sequence[Reading]
    probabilities: NDArray[np.float64]
    """Of each sentence."""
    probability: float
    """Of the answer, by all of them."""


Odds = Callable[[str, Sequence[Reading]], NDArray[np.float64]]
"""From an answer and what was read of its sentences to their log-odds of being unsupported."""


@dataclass(frozen=True, slots=True)
class SentenceJudge:
    """Judges the sentences of answers to a question on some passages."""

    passages: Passages
    odds: Odds
    calibration: Calibration
    """Of those log-odds."""
    model: Model
    """Its forest of contrasts judges a sentence beside its counterpart."""
    question: str = ""

    def sentences(self, answer: str, known: Sequence[Reading] = ()) -> Judged | None:
        """Judge an answer's sentences, `None` where it has none; `known` is as for `read`.

        What a check found counts whatever the log-odds say.
        """
        text = answer[:MAX_ANSWER_CHARACTERS]
        every, rarity = sentences_of(text), self.model.rarity
        sentences = [s for s in every if not is_foreign(s.text)] or every
        readings = read(text, sentences, self.passages, rarity, known, self.question)
        if not readings:
            return None
        odds = self.calibration.checked(self.odds(text, readings), excess(readings))
        whole = self.calibration.of_answers(odds, np.zeros(len(odds), dtype=np.int64), 1)
        probability = float(self.calibration.probability(whole)[0])
        return Judged(text, readings, self.calibration.alone(odds), probability)

    def contrasted(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of sentences beside their counterparts, of contrasts' rows."""
        return self.model.contrasted(rows, self.calibration.threshold)

    def value(self, probability: float) -> float:
        """Return the score of an answer from its probability."""
        return self.calibration.value(probability)


def by_forests(passages: Passages, question: str = "", model: Model | None = None) -> SentenceJudge:
    """Return what judges by the forests alone, the shipped ones where no others are given."""
    known = model or shipped()

    def odds(_: str, readings: Sequence[Reading]) -> NDArray[np.float64]:
        return known.raw(matrix(readings))

    return SentenceJudge(passages, odds, known.calibration, known, question)


def judge(answer: str, passages: Passages, question: str = "") -> Judgement | None:
    """Judge an answer by the shipped forests, `None` where it has no sentence."""
    by = by_forests(passages, question)
    return alone(by.sentences(answer), by)


def alone(judged: Judged | None, by: SentenceJudge) -> Judgement | None:
    """Return what was judged of an answer by itself, `None` where it has no sentence."""
    if judged is None:
        return None
    said = zip(judged.readings, judged.probabilities.tolist(), strict=True)
    sentences = tuple(SentenceJudgement(r, p) for r, p in said)
    return Judgement(judged.probability, by.value(judged.probability), sentences)


class _Indexes:
    """Indexes of passages, the last used ones kept up to a number of characters in all."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, ...], Passages] = OrderedDict()
        self._lock = threading.Lock()
        self.built = 0

    def __call__(self, texts: tuple[str, ...]) -> Passages:
        """Return the index of some passages, kept for the answers that rest on the same ones."""
        with self._lock:
            if texts in self._kept:
                self._kept.move_to_end(texts)
                return self._kept[texts]
        made = Passages(texts)
        with self._lock:
            self.built += 1
            self._kept[texts] = made
            while len(self._kept) > 1 and self._is_full():
                self._kept.popitem(last=False)
        return made

    def clear(self) -> None:
        """Forget all indexes."""
        with self._lock:
            self._kept.clear()
            self.built = 0

    def _is_full(self) -> bool:
        sizes = (sum(map(len, texts)) for texts in self._kept)
        return len(self._kept) > _MOST_INDEXES or sum(sizes) > _MOST_CHARACTERS


indexed = _Indexes()
"""The index of some passages; each evaluator of the process shares it."""


def _reason(reading: Reading, text: str) -> str:
    """Say what stands in the sentence and not in the passages, the hardest fact first."""
    found = reading.differences
    numbers = [text[t.start : t.end] for t in reading.unexplained]
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
