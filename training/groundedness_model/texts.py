"""Run answers through the frozen layers once, and batch the resulting states."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from torch import Tensor

from evals.evaluators.groundedness.features import Rarity, SentenceReading, read
from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.sentences import sentences_of
from evals.evaluators.groundedness_model.encoding import Encoder, Part, PassageChunk, memory
from evals.evaluators.groundedness_model.network import session
from training.groundedness.data import Labelled
from training.groundedness.examples import touched
from training.groundedness_model.network import WIDTH

Half = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Example:
    """A part of an answer, with its states and labels."""

    answer: int
    part: Part
    states: Half
    memory: tuple[Half, ...]
    """The states of the passages' chunks that the part attends to."""
    wrong_pieces: NDArray[np.float32]
    wrong_sentences: NDArray[np.float32]
    prior: float = 0.0
    """Log-odds that a sentence of its data set is wrong, above those of an answer's."""

    @property
    def size(self) -> int:
        """Number of wordpieces."""
        return len(self.part.ids)


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded parts of answers."""

    states: Tensor
    marks: Tensor
    sentences: Tensor
    """1 if a wordpiece (last axis) belongs to a sentence."""
    memory: Tensor
    seen: Tensor
    """Attention mask: the part's own states, then the passages'; False for padding."""
    inside: Tensor
    """1 at wordpieces of sentences."""
    wrong_pieces: Tensor
    wrong_sentences: Tensor
    prior: Tensor
    answers: tuple[int, ...]


class Reader:
    """Runs answers through the exported lower layers; equal passages in succession are run once."""

    def __init__(self, lower: Path, encoder: Encoder, rarity: Rarity) -> None:
        self._lower = session(onnxruntime, lower.read_bytes())
        self._encoder, self._rarity = encoder, rarity

    def examples(self, answers: Sequence[Labelled], first: int = 0) -> Iterator[Example]:
        """Yield the answers' parts; answers are numbered from `first`."""
        context, passages, chunks, states = None, Passages(()), list[PassageChunk](), list[Half]()
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
                yield _example(number, item, part, own, self._states(part.ids), seen)

    def _states(self, ids: NDArray[np.int64]) -> Half:
        found = self._lower.run(None, {"ids": ids[None]})[0][0]
        return np.asarray(found, dtype=np.float16)


def _example(
    number: int,
    item: Labelled,
    part: Part,
    readings: Sequence[SentenceReading],
    states: Half,
    seen: tuple[Half, ...],
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
    )


def batch(examples: Sequence[Example]) -> Batch:
    """Pad examples to a batch."""
    rows, longest = len(examples), max(e.size for e in examples)
    memory_sizes = [sum(map(len, e.memory)) for e in examples]
    counts, columns = max(e.part.count for e in examples), examples[0].part.marks.shape[1]
    states = np.zeros((rows, longest, WIDTH), dtype=np.float16)
    marks = np.zeros((rows, longest, columns), dtype=np.float32)
    sentences = np.zeros((rows, counts, longest), dtype=np.float32)
    passages = np.zeros((rows, max(memory_sizes), WIDTH), dtype=np.float16)
    seen = np.zeros((rows, 1, 1, longest + max(memory_sizes)), dtype=np.bool_)
    pieces = np.zeros((rows, longest), dtype=np.float32)
    wrong = np.zeros((rows, counts), dtype=np.float32)
    for row, example in enumerate(examples):
        size = example.size
        states[row, :size], marks[row, :size] = example.states, example.part.marks
        inside = np.flatnonzero(example.part.sentence >= 0)
        sentences[row, example.part.sentence[inside], inside] = 1
        passages[row, : memory_sizes[row]] = np.concatenate(example.memory)
        seen[row, 0, 0, :size] = True
        seen[row, 0, 0, longest : longest + memory_sizes[row]] = True
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
        torch.tensor([e.prior for e in examples]),
        tuple(e.answer for e in examples),
    )


def batches(examples: Sequence[Example], pieces: int, rng: random.Random) -> list[list[Example]]:
    """Group examples of similar length into batches of at most `pieces` wordpieces each."""
    order = sorted(examples, key=lambda e: e.size + rng.uniform(-20, 20))
    found, current, longest = list[list[Example]](), list[Example](), 0
    for example in order:
        longest = max(longest, example.size)
        if current and longest * (len(current) + 1) > pieces:
            found.append(current)
            current, longest = [], example.size
        current.append(example)
    found.append(current)
    rng.shuffle(found)
    return found
