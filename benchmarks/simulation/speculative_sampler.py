"""A speculative sampler over given distributions, or a synthetic model's, with optional bugs."""

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from benchmarks.simulation.laws import Floats
from evals.lossless.sampling_audit import Drafts, Rescored, observe

VOCABULARY, K = 64, 4


class Bug(StrEnum):
    """A bug of the sampler."""

    NONE = "correct"
    RESAMPLE_P = "resample from p instead of the residual"
    ARGMAX_DRAFTS = "argmax drafts treated as sampled"
    GENEROUS = "acceptance × 1.2"
    COOL = "temperature .9"
    TOP_P = "top-p .95 instead of 1"


class Laws(NamedTuple):
    """The distributions of target and draft at successive places, one row each."""

    p: Floats
    q: Floats

    def starting_at(self, first: int, places: int) -> "Laws":
        """Return so many places from the first on, around the end."""
        rows = (first + np.arange(places)) % len(self.p)
        return Laws(self.p[rows], self.q[rows])


def synthetic(places: int, rng: np.random.Generator) -> Laws:
    """Return the synthetic model's distributions."""
    logits = 2.0 * rng.normal(size=(places, VOCABULARY))
    q = _softmax(logits + 0.7 * rng.normal(size=logits.shape))
    return Laws(_softmax(logits), q)


def emitted(bug: Bug, tokens: int, rng: np.random.Generator, laws: Laws | None = None) -> Rescored:
    """Draw tokens with a sampler that has a bug, and rescore them under the true distribution.

    `laws`: of the places in turn; the synthetic model's if `None`.
    """
    p, q = laws or synthetic(tokens, rng)
    q = q.copy()
    used = _cooled(p) if bug is Bug.COOL else _top_p(p) if bug is Bug.TOP_P else p
    token, draft = np.zeros(tokens, dtype=np.int64), np.zeros(tokens, dtype=np.int64)
    accepted, place = np.zeros(tokens, dtype=np.bool_), 0
    for t in range(tokens):
        if place == K:  # every draft token was accepted: the bonus token
            token[t], place = _draw(used[t], rng), 0
            q[t] = np.nan
            continue
        draft[t] = q[t].argmax() if bug is Bug.ARGMAX_DRAFTS else _draw(q[t], rng)
        odds = used[t, draft[t]] / q[t, draft[t]] * (1.2 if bug is Bug.GENEROUS else 1.0)
        accepted[t] = rng.random() < odds
        residual = used[t] if bug is Bug.RESAMPLE_P else np.maximum(used[t] - q[t], 0.0)
        token[t] = draft[t] if accepted[t] else _draw(residual / residual.sum(), rng)
        place = place + 1 if accepted[t] else 0
    return observe(p, token, Drafts(q, draft, accepted), rng)


def _draw(law: Floats, rng: np.random.Generator) -> int:
    return min(int(np.searchsorted(law.cumsum(), rng.random())), len(law) - 1)


def _cooled(p: Floats) -> Floats:
    raised = p ** (1 / 0.9)
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _softmax(logits: Floats) -> Floats:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _top_p(p: Floats, mass: float = 0.95) -> Floats:
    order = np.argsort(-p, axis=1)
    ranked = np.take_along_axis(p, order, axis=1)
    kept = ranked.cumsum(axis=1) - ranked < mass
    cut = np.zeros_like(p)
    np.put_along_axis(cut, order, np.where(kept, ranked, 0.0), axis=1)
    return np.asarray(cut / cut.sum(axis=1, keepdims=True))
