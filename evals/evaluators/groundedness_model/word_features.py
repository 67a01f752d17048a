"""Features of each word of an answer, as inputs of the network."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.features import NAMES, Rarity, SentenceReading, matrix
from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.tokens import Token
from evals.evaluators.groundedness.word_changes import KINDS

_WORD = ("function_word", "near", "elsewhere", "absent", "number", "name", "negator",
         "pair_held", "triple_held")  # fmt: skip
_RARITY_STEPS = (3.0, 4.5, 5.5, 6.5)
_RARITY = tuple(f"rarer_than_{step}" for step in _RARITY_STEPS)
WORD_MARKS = (*_WORD, *_RARITY, *(f"splice_{kind}" for kind in KINDS))
"""The columns of a word; each is 0 or 1."""
COLUMNS = (*WORD_MARKS, *NAMES)
"""The columns of a wordpiece: its word's, then its sentence's features."""

Floats = NDArray[np.float32]


def word_marks(reading: SentenceReading, passages: Passages, rarity: Rarity) -> Floats:
    """Return one row of marks for each word of a sentence."""
    tokens = reading.sentence.tokens
    rows = [passages.ids.get(token.form.stem, -1) for token in tokens]
    near = frozenset(passages.row[reading.start : reading.end])
    found = np.zeros((len(tokens), len(WORD_MARKS)), dtype=np.float32)
    for at, token in enumerate(tokens):
        presence = _presence(token, rows[at], near)
        found[at, : len(_WORD)] = (*presence, *_kind(token), *_copied(at, rows, passages))
        weight = rarity.of(token.form.stem) if token.form.is_content else 0.0
        found[at, len(_WORD) : len(_WORD) + len(_RARITY)] = [weight > s for s in _RARITY_STEPS]
    for splice in reading.splices:
        found[splice.at, WORD_MARKS.index(f"splice_{splice.kind}")] = 1.0
    return found


def sentence_marks(readings: Sequence[SentenceReading]) -> Floats:
    """Return the features of each sentence, as sign(x)·log(1 + |x|) to shorten long tails."""
    rows = matrix(readings)
    return np.asarray(np.sign(rows) * np.log1p(np.abs(rows)), dtype=np.float32)


def _presence(token: Token, row: int, near: frozenset[int]) -> tuple[bool, bool, bool, bool]:
    if not token.form.is_content:
        return (True, False, False, False)
    return (False, row in near and row >= 0, row >= 0 and row not in near, row < 0)


def _kind(token: Token) -> tuple[bool, bool, bool]:
    return (token.form.is_number, token.is_name, token.form.is_negator)


def _copied(at: int, rows: Sequence[int], passages: Passages) -> tuple[bool, bool]:
    """Return whether the word is in a pair, and in the middle of a triple, of the passages."""
    before = rows[at - 1] if at else -1
    after = rows[at + 1] if at + 1 < len(rows) else -1
    pair = (before, rows[at]) in passages.pairs or (rows[at], after) in passages.pairs
    return pair, (before, rows[at], after) in passages.triples
