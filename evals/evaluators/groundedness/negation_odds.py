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
INTERCEPT = ""
"""The term that every place has."""
_REACH = 12
"""Words on either side that are looked at."""
_BEFORE, _BEHIND = 2, 3
"""Content words of these that count."""


def terms(tokens: Sequence[Token], at: int) -> Iterator[str]:
    """Yield the terms of the place before the token with the index `at`, each once."""
    before = tokens[max(at - _REACH, 0) : at]
    behind = tokens[at : at + _REACH]
    left = before[-1].form.stem if before else "^"
    right = behind[0].form.stem if behind else "$"
    yield from (INTERCEPT, f"<{left}", f">{right}", f"={left} {right}")
    yield "-" + " ".join(t.form.stem for t in before[-2:])
    yield "+" + " ".join(t.form.stem for t in behind[:2])
    named = [t.form.stem for t in before if t.form.is_content][-_BEFORE:]
    governed = [t.form.stem for t in behind if t.form.is_content][:_BEHIND]
    yield from (f"a{stem}" for stem in dict.fromkeys(named))
    yield from (f"b{stem}" for stem in dict.fromkeys(governed))


def log_odds(tokens: Sequence[Token], at: int) -> float:
    """Return the log-odds that text has a negation where the token with the index `at` is one."""
    rest = [*tokens[max(at - _REACH, 0) : at], *tokens[at + 1 : at + 1 + _REACH]]
    known = _weights()
    return sum(known.get(term, 0.0) for term in terms(rest, min(at, _REACH)))


@cache
def _weights() -> dict[str, float]:
    lines = gzip.decompress(FILE.read_bytes()).decode().splitlines()
    return {term: float(weight) for weight, _, term in (line.partition(" ") for line in lines)}
