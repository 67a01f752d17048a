"""Fit how usual a negation is at a place: `python -m training.groundedness.negations`.

The folder holds `halueval_qa.jsonl.gz` and `halueval_general.jsonl.gz`; their labels are not used.
Needs scikit-learn.
"""

import argparse
import gzip
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from evals.evaluators.groundedness.negation_odds import DO, FILE, INTERCEPT, terms
from evals.evaluators.groundedness.tokens import tokens_of
from training.groundedness.data import COUNTED, texts

_PART = re.compile(r"(?<=[.!?])\s+|\n+")
_PLAIN_SHARE = 0.5
"""Share of the places without a negation that are used, of sentences without any."""
_SEED = 20261121
_LEAST_COUNT = 8
_LEAST_WEIGHT = 0.1
"""Rarer terms, and those that weigh less, are left out."""
Place = tuple[list[str], bool]
"""A place's terms, and whether it has a negation."""


def main(argv: Sequence[str] | None = None) -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(prog="python -m training.groundedness.negations")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=FILE)
    args = parser.parse_args(argv)
    rng = random.Random(_SEED)  # noqa: S311 - a seeded draw, no secret
    every = dict.fromkeys(text for name in COUNTED for text in texts(args.data / name))
    weights = fitted([place for text in every for place in _places(text, rng)])
    lines = [f"{weight:.2f} {term}" for term, weight in sorted(weights.items())]
    args.out.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def fitted(places: Sequence[Place]) -> dict[str, float]:
    """Return the weights of the terms."""
    counts = Counter(term for found, _ in places for term in found)
    known = sorted(term for term, n in counts.items() if n >= _LEAST_COUNT and term != INTERCEPT)
    number = {term: at for at, term in enumerate(known)}
    rows = [(at, number[t]) for at, (found, _) in enumerate(places) for t in found if t in number]
    shape = len(places), len(known)
    matrix = csr_matrix((np.ones(len(rows)), tuple(np.array(rows).T)), shape=shape)
    model = LogisticRegression(C=0.3, solver="liblinear", random_state=0)
    model.fit(matrix, [negated for _, negated in places])
    found = dict(zip(known, model.coef_[0].tolist(), strict=True))
    kept = {term: weight for term, weight in found.items() if abs(weight) >= _LEAST_WEIGHT}
    return kept | {INTERCEPT: float(model.intercept_[0])}


def _places(text: str, rng: random.Random) -> Iterator[Place]:
    for part in _PART.split(text):
        tokens = tokens_of(part)
        negations = [at for at, token in enumerate(tokens) if token.form.is_negator]
        for at in negations:
            yield list(terms(tokens[:at], tokens[at + 1 :])), True
            if at and tokens[at - 1].form.stem in DO:
                yield list(terms(tokens[: at - 1], tokens[at + 1 :])), True
        if not negations:
            chosen = [at for at in range(len(tokens)) if rng.random() < _PLAIN_SHARE]
            yield from ((list(terms(tokens[:at], tokens[at:])), False) for at in chosen)


if __name__ == "__main__":
    main()
