"""Judge an answer against its passages, sentence by sentence."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.acronyms import Acronyms, acronyms_of, as_held
from evals.evaluators.groundedness.checks import excess
from evals.evaluators.groundedness.conversions import Amount, KnownAmounts, amounts_of
from evals.evaluators.groundedness.features import SentenceReading, converted, matrix, read
from evals.evaluators.groundedness.language import is_foreign
from evals.evaluators.groundedness.model import Calibration, Model, shipped
from evals.evaluators.groundedness.passages import Passages, PassageSpan
from evals.evaluators.groundedness.sentences import Sentence, sentences_of
from evals.evaluators.groundedness.token import Token

MAX_ANSWER_CHARACTERS = 50_000
"""Only this many characters at an answer's beginning are judged."""
MAX_CONTEXT_CHARACTERS = 1_000_000
_MAX_INDEXES = 16
_MAX_CHARACTERS = 1_500_000
"""Limit on the cached passages; an index takes about 100 bytes per character."""
_MAX_NAMED = 4
_MAX_WORD = 40


@dataclass(frozen=True, slots=True)
class SentenceJudgement:
    """The probability that one sentence is unsupported."""

    reading: SentenceReading
    probability: float
    instead: str | None = None
    """The counterpart in the other answer of the pair; None if none was compared."""

    @property
    def sentence(self) -> Sentence:
        """The sentence."""
        return self.reading.sentence

    def reason(self, answer: str) -> str:
        """Describe what in the sentence the passages do not support."""
        return _reason(self.reading, answer)

    def nearest(self, passages: Passages) -> PassageSpan | None:
        """Return the nearest stretch of the passages."""
        return passages.span(self.reading.start, self.reading.end)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The probability that an answer says something that its passages do not support."""

    probability: float
    value: float
    """The score: 1 − probability, sharpened so that the threshold is at 0.5."""
    sentences: tuple[SentenceJudgement, ...]
    shared: int | None = None
    """Sentences that the other answer of the pair has too; None if it was not compared."""

    @property
    def declines(self) -> bool:
        """Whether every sentence only says that the passages lack the information."""
        return all(s.sentence.is_refusal for s in self.sentences)

    @property
    def score(self) -> float:
        """The value, but 1 if the answer only declines, since it then claims nothing."""
        return 1.0 if self.declines else self.value


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer's sentences, each judged by itself."""

    text: str
    readings: Sequence[SentenceReading]
    probabilities: NDArray[np.float64]
    """One for each sentence."""
    probability: float
    """The whole answer's."""

    @property
    def tokens(self) -> list[Token]:
        """The words of its sentences."""
        return [token for reading in self.readings for token in reading.sentence.tokens]


Odds = Callable[[str, Sequence[SentenceReading]], NDArray[np.float64]]
"""Maps an answer and its sentences' readings to the sentences' log-odds of being unsupported."""


@dataclass(frozen=True, slots=True)
class SentenceJudge:
    """Judges the sentences of answers to one question on one set of passages."""

    passages: Passages
    odds: Odds
    calibration: Calibration
    """The calibration of `odds`."""
    model: Model
    """Gives word rarities, and the contrast forest for sentences beside a counterpart."""
    question: str = ""

    def sentences(self, answer: str, known: Sequence[SentenceReading] = ()) -> JudgedAnswer | None:
        """Judge an answer's sentences; `None` if it has none. `known` is as for `read`.

        A check's finding overrides lower log-odds.
        """
        text = answer[:MAX_ANSWER_CHARACTERS]
        every, rarity = sentences_of(text), self.model.rarity
        sentences = [s for s in every if not is_foreign(s.text)] or every
        readings = read(text, sentences, self.passages, rarity, known, self.question)
        if not readings:
            return None
        found, one = excess(readings), np.zeros(len(readings), dtype=np.int64)
        odds = self.calibration.checked(self.odds(text, readings), found)
        whole = self.calibration.of_checked(odds, found, one, 1)
        probability = float(self.calibration.probability(whole)[0])
        return JudgedAnswer(text, readings, self.calibration.alone(odds), probability)

    def acronyms(self, *answers: JudgedAnswer) -> Acronyms:
        """Return the acronyms that the passages or these answers define and the passages hold."""
        theirs = (acronyms_of(each.tokens, each.text) for each in answers)
        return as_held((self.passages.acronyms, *theirs), self.passages.ids)

    def converted(
        self, judged: JudgedAnswer, acronyms: Acronyms, other: JudgedAnswer | None = None
    ) -> JudgedAnswer:
        """Return the answer with its quantities in the passages' units; judged as before.

        Quantities that the passages lack are put in the other answer's units. Of a known
        acronym and its name, one is put for both.
        """
        known: Iterable[Amount] = self.passages.amounts
        if other is not None:
            known = chain(known, amounts_of(other.tokens, other.text))
        by = self.passages, self.model.rarity, KnownAmounts(known), acronyms, self.question
        return replace(judged, readings=converted(judged.readings, judged.text, *by))

    def contrasted(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of sentences beside counterparts, from rows of `contrast`."""
        return self.model.contrasted(rows, self.calibration.threshold)

    def value(self, probability: float) -> float:
        """Return the score of an answer from its probability."""
        return self.calibration.value(probability)


def by_forests(passages: Passages, question: str = "", model: Model | None = None) -> SentenceJudge:
    """Return a judge that uses only the forests, by default the shipped ones."""
    known = model or shipped()

    def odds(_: str, readings: Sequence[SentenceReading]) -> NDArray[np.float64]:
        return known.raw(matrix(readings))

    return SentenceJudge(passages, odds, known.calibration, known, question)


def judge(answer: str, passages: Passages, question: str = "") -> Judgement | None:
    """Judge an answer with the shipped forests; `None` if it has no sentence."""
    sentence_judge = by_forests(passages, question)
    return judge_alone(sentence_judge.sentences(answer), sentence_judge)


def judge_alone(judged: JudgedAnswer | None, judge: SentenceJudge) -> Judgement | None:
    """Return the judgement of an answer by itself; `None` if it has no sentence."""
    if judged is None:
        return None
    rows = zip(judged.readings, judged.probabilities.tolist(), strict=True)
    sentences = tuple(SentenceJudgement(r, p) for r, p in rows)
    return Judgement(judged.probability, judge.value(judged.probability), sentences)


class _Indexes:
    """LRU cache of passages' indexes, limited in entries and in characters."""

    def __init__(self) -> None:
        self._cached: OrderedDict[tuple[str, ...], Passages] = OrderedDict()
        self._lock = threading.Lock()
        self.built = 0

    def __call__(self, texts: tuple[str, ...]) -> Passages:
        """Return the passages' index, built unless it is cached."""
        with self._lock:
            if texts in self._cached:
                self._cached.move_to_end(texts)
                return self._cached[texts]
        made = Passages(texts)
        with self._lock:
            self.built += 1
            self._cached[texts] = made
            while len(self._cached) > 1 and self._is_full():
                self._cached.popitem(last=False)
        return made

    def clear(self) -> None:
        """Drop all cached indexes."""
        with self._lock:
            self._cached.clear()
            self.built = 0

    def _is_full(self) -> bool:
        sizes = (sum(map(len, texts)) for texts in self._cached)
        return len(self._cached) > _MAX_INDEXES or sum(sizes) > _MAX_CHARACTERS


indexed = _Indexes()
"""Returns the index of some passages; one cache for all evaluators of the process."""


def _reason(reading: SentenceReading, text: str) -> str:
    """Describe what the passages do not support: the strongest finding."""
    found = reading.differences
    numbers = [text[t.start : t.end] for t in reading.unexplained]
    names = [text[t.start : t.end] for t in reading.absent if t.is_name]
    cites = bool(reading.sentence.attributed_to)
    others = [
        text[t.start : t.end] for t in reading.absent if not (cites and t.form.stem == "accord")
    ]
    negated = {s.kind for s in reading.splices} & {"added_negation", "dropped_negation"}
    missing = [f"passage {number}" for number in reading.missing_passages]
    reasons = (
        missing and f"there is no {_listed(missing)}",
        reading.miscalculated and f"{_listed(reading.miscalculated)} is miscalculated",
        numbers and f"{_listed(numbers)} not in the passages",
        _instead(reading.other_units or reading.other_bounds or found.numbers_swapped),
        names and f"{_listed(names)} not in the passages",
        _instead(found.names_swapped) or _instead(found.antonyms),
        negated and "negated otherwise than in the passages",
        others and f"{_listed(others)} not in the passages",
    )
    return next((reason for reason in reasons if reason), "not said so in the passages")


def _listed(words: Sequence[str]) -> str:
    return ", ".join(word[:_MAX_WORD] for word in list(dict.fromkeys(words))[:_MAX_NAMED])


def _instead(pairs: Sequence[tuple[str, str]]) -> str:
    """Describe up to two swapped words."""
    return ", ".join(f"{ours} where the passages have {theirs}" for ours, theirs in pairs[:2])
