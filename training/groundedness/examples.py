"""Labelled sentences: of real answers, and of corrupted grounded answers."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.checks import excess
from evals.evaluators.groundedness.features import Rarity, matrix, read
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.sentences import Sentence, sentences_of
from training.groundedness.corruption import KINDS, corrupt
from training.groundedness.data import Labelled
from training.groundedness.edits.places import Source

_LEAST_OVERLAP = 3
"""A sentence is unsupported if it shares at least this many characters with a marked span."""


@dataclass(frozen=True, slots=True)
class Sentences:
    """Feature rows of many answers' sentences."""

    rows: NDArray[np.float64]
    excess: NDArray[np.float64]
    """Each sentence's result of `checks.excess`."""
    answer: NDArray[np.int64]
    """The number of each row's answer."""
    unsupported: NDArray[np.bool_]
    """Whether a marked span touches the sentence."""
    contradicted: NDArray[np.bool_]
    """Whether a span marked as a contradiction touches the sentence."""

    def of(self, answers: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the mask of the rows of these answers."""
        return answers[self.answer]


def sentences(answers: Sequence[Labelled], rarity: Rarity) -> Sentences:
    """Return the features of all sentences."""
    rows, found, numbers, marked, contradicted = [], [], [], [], []
    for number, item in enumerate(answers):
        passages = indexed((item.context,))
        split = sentences_of(item.answer)
        readings = read(item.answer, split, passages, rarity, question=item.question)
        if not readings:
            continue
        rows.append(matrix(readings))
        found.append(excess(readings))
        numbers += [number] * len(readings)
        marked += [touched(reading.sentence, item.spans) for reading in readings]
        contradicted += [touched(reading.sentence, item.contradictions) for reading in readings]
    return Sentences(
        np.concatenate(rows),
        np.concatenate(found),
        np.array(numbers),
        np.array(marked),
        np.array(contradicted),
    )


def corrupted(answers: Sequence[Labelled], seed: int) -> list[Labelled]:
    """Return a corrupted copy of each grounded answer for every kind that applies."""
    rng = random.Random(seed)  # noqa: S311 - a seeded draw, no secret
    made = []
    for item, other in beside_strangers(answers, rng):
        source = Source(item.context, item.answer, other.answer)
        for kind in KINDS:
            found = corrupt(source, kind, rng)
            if found is not None:
                span = ((found.start, found.end),)
                made.append(
                    replace(
                        item, answer=found.answer, label=1, spans=span, kinds=(kind,), kind=kind
                    )
                )
    return made


def beside_strangers(
    answers: Sequence[Labelled], rng: random.Random
) -> Iterator[tuple[Labelled, Labelled]]:
    """Yield each grounded answer with a random grounded answer of another group."""
    good = [item for item in answers if item.label == 0]
    for item in good:
        other = rng.choice(good)
        while other.group == item.group:
            other = rng.choice(good)
        yield item, other


def touched(sentence: Sentence, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a span of the answer (end exclusive) touches a sentence."""
    return any(
        min(sentence.end, end) - max(sentence.start, start) >= min(_LEAST_OVERLAP, end - start)
        for start, end in spans
    )
