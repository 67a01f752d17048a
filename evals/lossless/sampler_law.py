"""The distribution that a sampler draws from, computed from the model's logits."""

from collections.abc import Callable
from typing import Final

import numpy as np

from collector.contract import SamplerSteps
from evals.lossless.sampling_audit import Floats


def law(logits: Floats, steps: SamplerSteps) -> Floats:
    """Return the distributions after the sampler's steps, in their order.

    Top-p keeps the most likely tokens, up to and including the one that reaches it; min-p keeps
    those with at least this share of the most likely one's probability. Raises `KeyError` for a
    step that is not modelled.
    """
    for name, value in steps:
        logits = _STEPS[name](logits, value)
    return _softmax(logits)


def _temperature(logits: Floats, value: float) -> Floats:
    return logits / value


def _top_k(logits: Floats, value: float) -> Floats:
    k = int(value)
    if not 0 < k < logits.shape[1]:
        return logits
    least = np.partition(logits, -k, axis=1)[:, [-k]]
    return np.where(logits < least, -np.inf, logits)


def _top_p(logits: Floats, value: float) -> Floats:
    if value >= 1:
        return logits
    p = _softmax(logits)
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=1)
    beyond = np.empty(p.shape, dtype=np.bool_)
    np.put_along_axis(beyond, order, ranked.cumsum(axis=1) - ranked >= value, axis=1)
    return np.where(beyond, -np.inf, logits)


def _min_p(logits: Floats, value: float) -> Floats:
    with np.errstate(divide="ignore"):
        least = logits.max(axis=1, keepdims=True) + np.log(value)
    return np.where(logits < least, -np.inf, logits)


_STEPS: Final[dict[str, Callable[[Floats, float], Floats]]] = {
    "temperature": _temperature,
    "top_k": _top_k,
    "top_p": _top_p,
    "min_p": _min_p,
}


def _softmax(logits: Floats) -> Floats:
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))
