"""How usual a negation is at its place in a sentence, by the words around it.

A logistic regression on places with and without a negation in English text;
`training.groundedness.negations` makes the file.
"""

import gzip
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from evals.evaluators.groundedness.token import Token

FILE = Path(__file__).parent / "negations.txt.gz"
DO = frozenset(["do", "does", "did"])
"""Auxiliaries that a negation brings along."""
INTERCEPT = ""
"""The term that every place has."""
_REACH = 12
"""Words on either side that are looked at."""
_BEFORE, _BEHIND = 2, 3
"""Content words of these that count."""


def terms(before: Sequence[Token], behind: Sequence[Token]) -> Iterator[str]:
    """Yield the terms of the place between some words and those behind it, each once."""
    before, behind = before[-_REACH:], behind[:_REACH]
    left = before[-1].form.stem if before else "^"
    right = behind[0].form.stem if behind else "$"
    yield from (INTERCEPT, f"<{left}", f">{right}", f"={left} {right}")
    yield "-" + " ".join(t.form.stem for t in before[-2:])
    yield "+" + " ".join(t.form.stem for t in behind[:2])
    named = [t.form.stem for t in before if t.form.is_content][-_BEFORE:]
    governed = [t.form.stem for t in behind if t.form.is_content][:_BEHIND]
    yield from (f"a{stem}" for stem in dict.fromkeys(named))
    yield from (f"b{stem}" for stem in dict.fromkeys(governed))


def log_odds(tokens: Sequence[Token], at: int, *, with_do: bool = False) -> float:
    """Return the log-odds that text has a negation where the token with the index `at` is one.

    With `with_do`, those of the negation together with the `do` before it, as in `does not hold`
    for `holds`.
    """
    known = _weights()
    before = tokens[: at - 1] if with_do else tokens[:at]
    return sum(known.get(term, 0.0) for term in terms(before, tokens[at + 1 :]))


@cache
def _weights() -> dict[str, float]:
    lines = gzip.decompress(FILE.read_bytes()).decode().splitlines()
    return {term: float(weight) for weight, _, term in (line.partition(" ") for line in lines)}
