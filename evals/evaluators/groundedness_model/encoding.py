"""Encode answers and passages for the network: wordpieces with features."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from evals.evaluators.groundedness.features import Rarity, SentenceReading
from evals.evaluators.groundedness.passages import Passages, PassageSpan
from evals.evaluators.groundedness_model.word_features import (
    COLUMNS,
    WORD_MARKS,
    Floats,
    sentence_marks,
    word_marks,
)

MAX_PART = 320
"""Wordpieces in one part of an answer; a longer answer is read in parts."""
MAX_CHUNK = 160
"""Wordpieces in one chunk of a passage."""
MAX_MEMORY = 480
"""Wordpieces of passages that one part of an answer attends to: the nearest chunks."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PassageChunk:
    """A chunk of a passage."""

    ids: Ints
    span: PassageSpan


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive sentences of an answer; a short answer is one part."""

    ids: Ints
    sentence: Ints
    """Each wordpiece's sentence, counted from the part's first; −1 for special tokens."""
    marks: Floats
    """One row per wordpiece: its word's marks, then its sentence's features."""
    offsets: NDArray[np.int64]
    """Each wordpiece's start and end character."""
    first: int
    """Number of the first sentence."""
    count: int
    """Number of sentences."""


class Encoder:
    """Cuts texts into the wordpieces of MiniLM's vocabulary."""

    def __init__(self, tokenizer: Tokenizer, rarity: Rarity) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._rarity = rarity
        self._ends = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")

    def chunks(self, passages: Passages) -> list[PassageChunk]:
        """Return all passages in chunks; the chunks of one passage are nearly equal in length."""
        return [chunk for piece in passages.pieces for chunk in self._chunks(piece, passages)]

    def parts(
        self, text: str, readings: Sequence[SentenceReading], passages: Passages
    ) -> list[Part]:
        """Split an answer into parts of at most `MAX_PART` wordpieces."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        ids = np.array(encoding.ids, dtype=np.int64)
        offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
        starts = [start for start, _ in encoding.offsets]
        ranges = []
        for reading in readings:
            begin = bisect_left(starts, reading.sentence.start)
            end = bisect_left(starts, reading.sentence.end)
            ranges.append(np.arange(begin, min(end, begin + MAX_PART - 2)))
        measured = sentence_marks(readings)
        parts = []
        for first, last in _part_ranges([len(r) for r in ranges]):
            pieces = np.concatenate(ranges[first:last])
            sentence = np.repeat(np.arange(last - first), [len(r) for r in ranges[first:last]])
            marks = np.zeros((len(pieces) + 2, len(COLUMNS)), dtype=np.float32)
            marks[1:-1, : len(WORD_MARKS)] = self._marks_of_wordpieces(
                readings[first:last], passages, offsets[pieces]
            )
            marks[1:-1, len(WORD_MARKS) :] = measured[first:last][sentence]
            parts.append(
                Part(
                    ids=self._with_special_tokens(ids[pieces]),
                    sentence=np.concatenate([[-1], sentence, [-1]]),
                    marks=marks,
                    offsets=np.concatenate([[[0, 0]], offsets[pieces], [[0, 0]]]),
                    first=first,
                    count=last - first,
                )
            )
        return parts

    def _chunks(self, piece: PassageSpan, passages: Passages) -> Iterator[PassageChunk]:
        text = passages.texts[piece.passage][piece.start : piece.end]
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        ids, offsets = np.array(encoding.ids, dtype=np.int64), encoding.offsets
        if not len(ids):
            return
        for part in np.array_split(np.arange(len(ids)), -(-len(ids) // (MAX_CHUNK - 2))):
            start, end = offsets[part[0]][0], offsets[part[-1]][1]
            span = PassageSpan(piece.passage, piece.start + start, piece.start + end)
            yield PassageChunk(self._with_special_tokens(ids[part]), span)

    def _with_special_tokens(self, ids: Ints) -> Ints:
        return np.concatenate([[self._ends[0]], ids, [self._ends[1]]])

    def _marks_of_wordpieces(
        self, readings: Sequence[SentenceReading], passages: Passages, offsets: NDArray[np.int64]
    ) -> Floats:
        """Return each wordpiece's marks, which are those of its word."""
        tokens = [token for reading in readings for token in reading.sentence.tokens]
        rows = [word_marks(reading, passages, self._rarity) for reading in readings]
        table = np.concatenate([*rows, np.zeros((1, len(WORD_MARKS)), dtype=np.float32)])
        starts = [token.start for token in tokens]
        at = np.array([bisect_right(starts, start) - 1 for start, _ in offsets], dtype=np.int64)
        ends = np.array([token.end for token in tokens])
        outside = (at < 0) | (offsets[:, 0] >= ends[at])
        return np.asarray(table[np.where(outside, len(tokens), at)])


def memory(
    chunks: Sequence[PassageChunk], readings: Sequence[SentenceReading], passages: Passages
) -> list[int]:
    """Return the indices of the chunks to compare sentences with: all, or the nearest that fit."""
    sizes = [len(chunk.ids) for chunk in chunks]
    if sum(sizes) <= MAX_MEMORY:
        return list(range(len(chunks)))
    votes = [0.0] * len(chunks)
    for reading in readings:
        near = passages.span(reading.start, reading.end)
        for at, chunk in enumerate(chunks):
            if near is not None and chunk.span.passage == near.passage:
                shared = min(chunk.span.end, near.end) - max(chunk.span.start, near.start)
                votes[at] += max(shared, 0) / (near.end - near.start)
    chosen, left = list[int](), MAX_MEMORY
    for at in sorted(range(len(chunks)), key=lambda at: (-votes[at], at)):
        if sizes[at] > left:
            break
        chosen.append(at)
        left -= sizes[at]
    return sorted(chosen)


def _part_ranges(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the start and end sentence of each part."""
    first, total = 0, 0
    for at, size in enumerate(sizes):
        if at > first and total + size > MAX_PART - 2:
            yield first, at
            first, total = at, 0
        total += size
    yield first, len(sizes)
