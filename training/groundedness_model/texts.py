"""Answers read once by the layers that are not trained, and batches of what came out."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from torch import Tensor

from evals.evaluators.groundedness.features import Rarity, Reading, read
from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.sentences import sentences_of
from evals.evaluators.groundedness_model.encoding import Chunk, Encoder, Part, memory
from evals.evaluators.groundedness_model.network import session
from training.groundedness.data import Labelled
from training.groundedness.examples import touched
from training.groundedness_model.network import WIDTH

Half = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Example:
    """A part of an answer with its labels."""

    answer: int
    part: Part
    states: Half
    memory: tuple[Half, ...]
    """The states of the passages' chunks that it sees."""
    wrong_pieces: NDArray[np.float32]
    wrong_sentences: NDArray[np.float32]
    weight: float

    @property
    def size(self) -> int:
        """Wordpieces."""
        return len(self.part.ids)


@dataclass(frozen=True, slots=True)
class Batch:
    """Parts of answers side by side, padded."""

    states: Tensor
    marks: Tensor
    sentences: Tensor
    """1 where a wordpiece (last axis) belongs to a sentence."""
    memory: Tensor
    seen: Tensor
    """True at the own states, then at the passages', that may be looked at."""
    inside: Tensor
    """1 at wordpieces of sentences."""
    wrong_pieces: Tensor
    wrong_sentences: Tensor
    weight: Tensor
    answers: tuple[int, ...]


class Reader:
    """Reads answers by the lower layers as they are shipped; passages in a row are read once."""

    def __init__(self, lower: Path, encoder: Encoder, rarity: Rarity) -> None:
        self._lower = session(onnxruntime, lower.read_bytes())
        self._encoder, self._rarity = encoder, rarity

    def examples(
        self, answers: Sequence[Labelled], first: int = 0, weight: float = 1.0
    ) -> Iterator[Example]:
        """Yield the answers' parts; answers are numbered from `first`."""
        context, passages, chunks, states = None, Passages(()), list[Chunk](), list[Half]()
        for number, item in enumerate(answers, first):
            if item.context != context:
                context, passages = item.context, Passages((item.context,))
                chunks = self._encoder.chunks(passages)
                states = [self._states(chunk.ids) for chunk in chunks]
            sentences = sentences_of(item.answer)
            readings = read(item.answer, sentences, passages, self._rarity, question=item.question)
            if not readings:
                continue
            for part in self._encoder.parts(item.answer, readings, passages):
                own = readings[part.first : part.first + part.count]
                seen = tuple(states[at] for at in memory(chunks, own, passages))
                yield _example(number, item, part, own, self._states(part.ids), seen, weight)

    def _states(self, ids: NDArray[np.int64]) -> Half:
        found = self._lower.run(None, {"ids": ids[None]})[0][0]
        return np.asarray(found, dtype=np.float16)


def _example(
    number: int,
    item: Labelled,
    part: Part,
    readings: Sequence[Reading],
    states: Half,
    seen: tuple[Half, ...],
    weight: float,
) -> Example:
    pieces = [any(s < end and e > start for start, end in item.spans) for s, e in part.offsets]
    sentences = [touched(r.sentence, item.spans) for r in readings]
    return Example(
        number,
        part,
        states,
        seen,
        np.array(pieces, dtype=np.float32),
        np.array(sentences, dtype=np.float32),
        weight,
    )


def batch(examples: Sequence[Example]) -> Batch:
    """Return examples side by side."""
    rows, longest = len(examples), max(e.size for e in examples)
    held = [sum(map(len, e.memory)) for e in examples]
    counts, columns = max(e.part.count for e in examples), examples[0].part.marks.shape[1]
    states = np.zeros((rows, longest, WIDTH), dtype=np.float16)
    marks = np.zeros((rows, longest, columns), dtype=np.float32)
    sentences = np.zeros((rows, counts, longest), dtype=np.float32)
    passages = np.zeros((rows, max(held), WIDTH), dtype=np.float16)
    seen = np.zeros((rows, 1, 1, longest + max(held)), dtype=np.bool_)
    pieces = np.zeros((rows, longest), dtype=np.float32)
    wrong = np.zeros((rows, counts), dtype=np.float32)
    for row, example in enumerate(examples):
        size = example.size
        states[row, :size], marks[row, :size] = example.states, example.part.marks
        inside = np.flatnonzero(example.part.sentence >= 0)
        sentences[row, example.part.sentence[inside], inside] = 1
        passages[row, : held[row]] = np.concatenate(example.memory)
        seen[row, 0, 0, :size] = True
        seen[row, 0, 0, longest : longest + held[row]] = True
        pieces[row, :size] = example.wrong_pieces
        wrong[row, : example.part.count] = example.wrong_sentences
    return Batch(
        torch.from_numpy(states).float(),
        torch.from_numpy(marks),
        torch.from_numpy(sentences),
        torch.from_numpy(passages).float(),
        torch.from_numpy(seen),
        torch.from_numpy(sentences.sum(1)),
        torch.from_numpy(pieces),
        torch.from_numpy(wrong),
        torch.tensor([e.weight for e in examples]),
        tuple(e.answer for e in examples),
    )


def batches(examples: Sequence[Example], pieces: int, rng: random.Random) -> list[list[Example]]:
    """Return examples of like length together, each batch of at most so many wordpieces."""
    order = sorted(examples, key=lambda e: e.size + rng.uniform(-20, 20))
    found, held, longest = list[list[Example]](), list[Example](), 0
    for example in order:
        longest = max(longest, example.size)
        if held and longest * (len(held) + 1) > pieces:
            found.append(held)
            held, longest = [], example.size
        held.append(example)
    found.append(held)
    rng.shuffle(found)
    return found
