"""Whether tokens are those that a request's seed gives, under the baseline's model.

An engine whose draws can be made again has an entry in `_ENGINES`. llama.cpp draws one number a
token and takes the first token, by rank if a step has sorted them, whose cumulative probability
reaches it. It verifies drafts with the same draws, so an answer with drafts has the tokens of the
answer without.

Source: Token-DiFR, arXiv 2511.20621.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from collector.contract import Generation, SamplerSteps
from evals.lossless import local_draws
from evals.lossless.sampling_audit import Floats, Ints

_UNSEEDED: Final = 2**32 - 1
"""The seed with which llama.cpp draws one itself."""
_RANKING: Final = frozenset({"top_k", "top_p"})
_NEAR: Final = 0.05
"""Probabilities that differ by less than this share may be ranked either way."""
_MARGIN: Final = 0.02
"""Distance of a draw from its token's interval that numerics may cause."""
_RESUMED: Final = 3


class RescoredAnswer(NamedTuple):
    """An answer's tokens under the rescored models."""

    steps: SamplerSteps
    laws: Floats
    """The baseline's distributions, one row a token."""
    tokens: Ints
    drafts: Floats | None
    """The draft model's, if it is known."""
    dtypes: frozenset[str]
    """What these models compute in."""


def misses(one: Generation, seen: RescoredAnswer) -> Floats | str | None:
    """Return, for each token that counts, whether it is a miss (1.0 or 0.0).

    A miss lies farther from its draw than numerics explain. If the draws cannot be made again, why;
    `None` for engines of which none can.
    """
    if (engine := _ENGINES.get(one.provider or "")) is None:
        return None
    far = engine.distances(one, seen)
    return counted(far, engine.margin)[1] if isinstance(far, np.ndarray) else far


def _of_llamacpp(one: Generation, seen: RescoredAnswer) -> Floats | None:
    if one.sampler is None or one.seed is None or not 0 <= one.seed < _UNSEEDED:
        return None
    ranked = any(name in _RANKING for name, _ in seen.steps)
    return distances(seen.laws, seen.tokens, draws(one.seed, len(seen.tokens)), ranked=ranked)


def _of_local(one: Generation, seen: RescoredAnswer) -> Floats | str:
    return local_draws.of_answer(one, seen.laws, seen.tokens, seen.drafts, seen.dtypes)


class _Engine(NamedTuple):
    distances: Callable[[Generation, RescoredAnswer], Floats | str | None]
    margin: float


_ENGINES: Final[Mapping[str, _Engine]] = {
    "llama_cpp": _Engine(_of_llamacpp, _MARGIN),
    "local": _Engine(_of_local, local_draws.MARGIN),
}


def counted(far: Floats, margin: float = _MARGIN) -> tuple[Ints, Floats]:
    """Return the places that count among an answer's distances, and whether each is a miss.

    After a miss, places count again once `_RESUMED` tokens in a row are the draws': a token that
    was cut wrongly, or a draw more than expected, moves those that follow.
    """
    missed = far > margin
    places, hits = [], _RESUMED
    for place, is_miss in enumerate(missed.tolist()):
        if hits >= _RESUMED:
            places.append(place)
        hits = 0 if is_miss else hits + 1
    kept = np.array(places, dtype=np.int64)
    return kept, missed[kept].astype(np.float64)


def draws(seed: int, count: int) -> Floats:
    """Return the first numbers in [0, 1) of `std::mt19937` by libstdc++'s uniform distribution."""
    generator = np.random.RandomState(seed)  # which seeds as C++ does
    raw = generator.randint(0, 2**32, 2 * count, dtype=np.uint32).astype(np.float64)
    return np.asarray((raw[0::2] + raw[1::2] * 2.0**32) / 2.0**64)


def distances(laws: Floats, tokens: Ints, drawn: Floats, *, ranked: bool) -> Floats:
    """Return each draw's distance from the interval of cumulative probability of its token.

    `laws`: the baseline's distributions, one row a token. `ranked`: most likely tokens first, else
    by id. 0 inside the interval.
    """
    rows = np.arange(len(tokens))
    own = laws[rows, tokens][:, None]
    if ranked:
        low = np.where(laws > own * (1 + _NEAR), laws, 0.0).sum(axis=1)
        high = np.where(laws >= own * (1 - _NEAR), laws, 0.0).sum(axis=1)
    else:
        high = laws.cumsum(axis=1)[rows, tokens]
        low = high - own[:, 0]
    return np.asarray(np.maximum(np.maximum(low - drawn, drawn - high), 0.0))
