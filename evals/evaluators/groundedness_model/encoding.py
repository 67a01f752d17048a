"""Answers and passages as the network reads them: wordpieces, with what is known of each."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from evals.evaluators.groundedness.features import Rarity, Reading
from evals.evaluators.groundedness.passages import Passages, Span
from evals.evaluators.groundedness_model.word_features import (
    COLUMNS,
    WORD_MARKS,
    Floats,
    sentence_marks,
    word_marks,
)

MAX_PART = 320
"""Wordpieces of an answer that are read at once; a longer one is read in parts."""
MAX_CHUNK = 160
"""Wordpieces of a passage that are read at once."""
MAX_MEMORY = 480
"""Wordpieces of passages that one part of an answer sees: of more, the nearest chunks."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a passage."""

    ids: Ints
    span: Span


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive sentences of an answer, the whole answer where it is short."""

    ids: Ints
    sentence: Ints
    """Each wordpiece's sentence, counted from the part's first; −1 outside of all."""
    marks: Floats
    """A row a wordpiece: its word's marks, then its sentence's measurements."""
    offsets: NDArray[np.int64]
    """Each wordpiece's characters, first and behind the last."""
    first: int
    """The number of its first sentence."""
    count: int


class Encoder:
    """Cuts texts into the wordpieces of MiniLM's vocabulary."""

    def __init__(self, tokenizer: Tokenizer, rarity: Rarity) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._rarity = rarity
        self._ends = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")

    def chunks(self, passages: Passages) -> list[Chunk]:
        """Return all passages in stretches, those of one passage of nearly equal length."""
        return [chunk for piece in passages.pieces for chunk in self._chunks(piece, passages)]

    def parts(self, text: str, readings: Sequence[Reading], passages: Passages) -> list[Part]:
        """Return an answer in parts that the network can read at once."""
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
        for first, last in _filled([len(r) for r in ranges]):
            pieces = np.concatenate(ranges[first:last])
            sentence = np.repeat(np.arange(last - first), [len(r) for r in ranges[first:last]])
            marks = np.zeros((len(pieces) + 2, len(COLUMNS)), dtype=np.float32)
            marks[1:-1, : len(WORD_MARKS)] = self._of_words(
                readings[first:last], passages, offsets[pieces]
            )
            marks[1:-1, len(WORD_MARKS) :] = measured[first:last][sentence]
            parts.append(
                Part(
                    ids=self._enclosed(ids[pieces]),
                    sentence=np.concatenate([[-1], sentence, [-1]]),
                    marks=marks,
                    offsets=np.concatenate([[[0, 0]], offsets[pieces], [[0, 0]]]),
                    first=first,
                    count=last - first,
                )
            )
        return parts

    def _chunks(self, piece: Span, passages: Passages) -> Iterator[Chunk]:
        text = passages.texts[piece.passage][piece.start : piece.end]
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        ids, offsets = np.array(encoding.ids, dtype=np.int64), encoding.offsets
        if not len(ids):
            return
        for part in np.array_split(np.arange(len(ids)), -(-len(ids) // (MAX_CHUNK - 2))):
            start, end = offsets[part[0]][0], offsets[part[-1]][1]
            span = Span(piece.passage, piece.start + start, piece.start + end)
            yield Chunk(self._enclosed(ids[part]), span)

    def _enclosed(self, ids: Ints) -> Ints:
        return np.concatenate([[self._ends[0]], ids, [self._ends[1]]])

    def _of_words(
        self, readings: Sequence[Reading], passages: Passages, offsets: NDArray[np.int64]
    ) -> Floats:
        """Return each wordpiece's marks: those of the word that it is a piece of."""
        tokens = [token for reading in readings for token in reading.sentence.tokens]
        rows = [word_marks(reading, passages, self._rarity) for reading in readings]
        table = np.concatenate([*rows, np.zeros((1, len(WORD_MARKS)), dtype=np.float32)])
        starts = [token.start for token in tokens]
        at = np.array([bisect_right(starts, start) - 1 for start, _ in offsets], dtype=np.int64)
        ends = np.array([token.end for token in tokens])
        outside = (at < 0) | (offsets[:, 0] >= ends[at])
        return np.asarray(table[np.where(outside, len(tokens), at)])


def memory(chunks: Sequence[Chunk], readings: Sequence[Reading], passages: Passages) -> list[int]:
    """Return which chunks some sentences are held against: all, or the nearest that fit."""
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


def _filled(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and behind the last sentence of each part that can be read at once."""
    first, held = 0, 0
    for at, size in enumerate(sizes):
        if at > first and held + size > MAX_PART - 2:
            yield first, at
            first, held = at, 0
        held += size
    yield first, len(sizes)
