"""Fit how usual a negation is at a place of a sentence."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from evals.evaluators.groundedness.negation_odds import DO, INTERCEPT, NegationOdds, terms
from evals.evaluators.groundedness.tokens import tokens_of

_PART = re.compile(r"(?<=[.!?])\s+|\n+")
_PLAIN_SHARE = 0.5
"""Share of the places without a negation that are used, of sentences without any."""
_SEED = 20261121
_LEAST_COUNT = 8
_LEAST_WEIGHT = 0.1
"""Rarer terms, and those that weigh less, are left out."""
Place = tuple[list[str], bool]
"""A place's terms, and whether it has a negation."""


def places(text: str) -> list[Place]:
    """Return the places of a text: all with a negation, and some without."""
    rng = random.Random(f"{_SEED} {text}")  # noqa: S311 - a seeded draw, no secret
    return list(_places(text, rng))


def fitted(documents: Sequence[Sequence[Place]]) -> NegationOdds:
    """Fit the regression on the places of documents, whose number tells how common a term is."""
    counts = Counter[str]()
    for document in documents:
        counts.update({term for found, _ in document for term in found})
    every = [place for document in documents for place in document]
    known = sorted(term for term, n in counts.items() if n >= _LEAST_COUNT and term != INTERCEPT)
    number = {term: at for at, term in enumerate(known)}
    rows = [(at, number[t]) for at, (found, _) in enumerate(every) for t in found if t in number]
    shape = len(every), len(known)
    matrix = csr_matrix((np.ones(len(rows)), tuple(np.array(rows).T)), shape=shape)
    model = LogisticRegression(C=0.1, solver="liblinear", random_state=0)
    model.fit(matrix, [negated for _, negated in every])
    found = dict(zip(known, model.coef_[0].tolist(), strict=True))
    kept = {term: round(w, 2) for term, w in found.items() if abs(w) >= _LEAST_WEIGHT}
    return NegationOdds(kept | {INTERCEPT: round(float(model.intercept_[0]), 2)})


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
