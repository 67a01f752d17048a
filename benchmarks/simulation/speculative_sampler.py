"""A speculative sampler over a synthetic model, with optional bugs."""

from enum import StrEnum

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


def emitted(bug: Bug, tokens: int, rng: np.random.Generator) -> Rescored:
    """Draw tokens with a sampler that has a bug, and rescore them under the true distribution."""
    logits = 2.0 * rng.normal(size=(tokens, VOCABULARY))
    q = _softmax(logits + 0.7 * rng.normal(size=logits.shape))
    p = _softmax(logits)
    used = _softmax(logits / 0.9) if bug is Bug.COOL else _top_p(p) if bug is Bug.TOP_P else p
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
    return min(int(np.searchsorted(law.cumsum(), rng.random())), VOCABULARY - 1)


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
