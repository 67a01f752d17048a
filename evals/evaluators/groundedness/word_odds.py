"""How usual a word is at its place in a sentence, by the other words of the sentence.

A softmax regression of low rank over the words that qualify a claim, in the manner of fastText
(Joulin et al., 2017); `training.groundedness.word_odds` fits it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.lexicon import NEGATORS
from evals.evaluators.groundedness.token import Token
from evals.evaluators.groundedness.tokens import form_of
from evals.evaluators.groundedness.word_classes import CLASSES

DO = frozenset(["do", "does", "did"])
"""Auxiliaries that a negation brings along."""
NO_WORD, OTHER, OTHER_PAST = range(3)
"""Numbers of the first choices: no word, one outside the vocabulary, one of these in the past."""
_WORDS = {*NEGATORS, *(w for name, of in CLASSES.items() if name != "unit" for w in of.split())}
VOCABULARY = ("", "*", "*~", *sorted({form_of(word).stem for word in _WORDS}))
"""Choices that can fill a place; the words are stems."""
_STEPS = 64
"""The file keeps vectors in 8 bits, in steps of 1/64."""
_NUMBERS = {stem: number for number, stem in enumerate(VOCABULARY)}
_NEGATORS = sorted({_NUMBERS[form_of(word).stem] for word in NEGATORS})


@dataclass(frozen=True, slots=True)
class WordOdds:
    """The fitted regression."""

    terms: Mapping[str, int]
    """Numbers of the terms that matter."""
    vectors: NDArray[np.float32]
    """One row per term: terms × rank."""
    readout: NDArray[np.float32]
    """rank × choices."""
    bias: NDArray[np.float32]
    """One per choice."""

    def of(self, place: Iterable[str]) -> NDArray[np.float64]:
        """Return the unnormalized log-probability of each choice at the place with these terms."""
        known = [self.terms[term] for term in place if term in self.terms]
        found = self.vectors[known].sum(0) @ self.readout + self.bias
        return np.asarray(found, dtype=np.float64)

    def of_negation(self, before: Sequence[Token], behind: Sequence[Token]) -> float:
        """Return the log-odds that a negation stands between these words, rather than no word."""
        found = self.of(terms(before, behind))
        return float(np.logaddexp.reduce(found[_NEGATORS]) - found[NO_WORD])


def rounded(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors as the file keeps them."""
    return from_steps(to_steps(vectors))


def to_steps(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return vectors in steps of 1/64."""
    return np.clip(np.round(vectors * _STEPS), -127, 127).astype(np.int8)


def from_steps(steps: NDArray[np.int8]) -> NDArray[np.float32]:
    """Invert `to_steps`."""
    return np.asarray(steps / _STEPS, dtype=np.float32)


def choice_of(token: Token) -> int:
    """Return the number of the choice that a word is."""
    other = OTHER_PAST if token.form.is_past else OTHER
    return _NUMBERS.get(token.form.stem, other)


def terms(before: Sequence[Token], behind: Sequence[Token]) -> Iterator[str]:
    """Yield the terms of the place between the words of a sentence, each once."""
    left = before[-1].form.stem if before else "^"
    right = behind[0].form.stem if behind else "$"
    yield from (f"<{left}", f">{right}", f"={left} {right}")
    yield "-" + " ".join(t.form.stem for t in before[-2:])
    yield "+" + " ".join(t.form.stem for t in behind[:2])
    yield "^" + " ".join(t.form.stem for t in before[:2])
    yield from (f"a{stem}" for stem in dict.fromkeys(t.form.stem for t in before))
    yield from (f"b{stem}" for stem in dict.fromkeys(t.form.stem for t in behind))
