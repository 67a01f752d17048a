"""How usual a negation is at its place in a sentence, by the other words of the sentence.

A logistic regression on places with and without a negation in English text;
`training.groundedness.negations` fits it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evals.evaluators.groundedness.token import Token

DO = frozenset(["do", "does", "did"])
"""Auxiliaries that a negation brings along."""
INTERCEPT = ""
"""The term that every place has."""


@dataclass(frozen=True, slots=True)
class NegationOdds:
    """The fitted regression."""

    weights: Mapping[str, float]
    """Weights of the terms that matter."""

    def at(self, tokens: Sequence[Token], at: int, *, with_do: bool = False) -> float:
        """Return the log-odds that text has a negation where the token with the index `at` is one.

        With `with_do`, those of the negation together with the `do` before it, as in `does not
        hold` for `holds`.
        """
        before = tokens[: at - 1] if with_do else tokens[:at]
        return sum(self.weights.get(term, 0.0) for term in terms(before, tokens[at + 1 :]))


def terms(before: Sequence[Token], behind: Sequence[Token]) -> Iterator[str]:
    """Yield the terms of the place between the words of a sentence, each once."""
    left = before[-1].form.stem if before else "^"
    right = behind[0].form.stem if behind else "$"
    yield from (INTERCEPT, f"<{left}", f">{right}", f"={left} {right}")
    yield "-" + " ".join(t.form.stem for t in before[-2:])
    yield "+" + " ".join(t.form.stem for t in behind[:2])
    yield "^" + " ".join(t.form.stem for t in before[:2])
    yield from (f"a{stem}" for stem in dict.fromkeys(t.form.stem for t in before))
    yield from (f"b{stem}" for stem in dict.fromkeys(t.form.stem for t in behind))
