"""A sampler that verifies drafts with the same draws, as llama.cpp's does, with optional bugs."""

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from benchmarks.simulation.laws import Floats
from benchmarks.simulation.speculative_sampler import Laws
from evals.lossless.sampling_audit import Rescored, observe
from evals.lossless.seeded_draws import distances

VOCABULARY = 64
_NOISE = 0.01
"""Standard deviation of the logits' numerical differences between engine and rescorer."""
_SHARE = 0.05
_LEAST = 1e-12


class Bug(StrEnum):
    """A bug of the sampler."""

    NONE = "correct"
    KEPT = "a wrong draft token kept in 5 % of places"
    STALE = "the logits of the place before in 5 % of places"
    COOL = "temperature .9"
    TOP_P = "top-p .95 instead of 1"


class Audited(NamedTuple):
    """The tokens of one run, as both audits see them."""

    rescored: Rescored
    distances: Floats


def emitted(bug: Bug, tokens: int, rng: np.random.Generator, laws: Laws | None = None) -> Audited:
    """Draw tokens with a sampler that has a bug, and rescore them under the true distribution.

    `laws`: of the places in turn; a synthetic model's if `None`.
    """
    if laws is None:
        logits = 2.0 * rng.normal(size=(tokens, VOCABULARY))
    else:
        logits = np.log(np.maximum(laws.p, _LEAST))
    used = logits + _NOISE * rng.normal(size=logits.shape)
    wrong = rng.random(tokens) < _SHARE
    if bug is Bug.COOL:
        used = used / 0.9
    if bug is Bug.STALE:
        used = np.where(wrong[:, None], np.roll(used, 1, axis=0), used)
    order = np.argsort(-used, axis=1)
    ranked = np.take_along_axis(_softmax(used), order, axis=1)
    if bug is Bug.TOP_P:
        ranked = np.where(ranked.cumsum(axis=1) - ranked < 0.95, ranked, 0.0)
        ranked /= ranked.sum(axis=1, keepdims=True)
    drawn = rng.random(tokens)
    place = np.minimum((ranked.cumsum(axis=1) < drawn[:, None]).sum(axis=1), logits.shape[1] - 1)
    token = order[np.arange(tokens), place]
    if bug is Bug.KEPT:
        drafts = 0.7 * rng.normal(size=logits.shape) + logits if laws is None else laws.q
        token = np.where(wrong, drafts.argmax(axis=1), token)
    p = _softmax(logits)
    return Audited(observe(p, token, None, rng), distances(p, token, drawn, ranked=True))


def _softmax(logits: Floats) -> Floats:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
