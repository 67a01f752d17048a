"""How far an answer of `engine: local` lies from the draws of its seed.

A step draws 2k + 1 numbers in [0, 1): one for each draft token, one for each acceptance, and one
for the target's own token. The step that a token belongs to follows from those before it; if the
margin leaves open how a token came about, every way is followed.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from collector.contract import Generation
from evals.lossless.sampling_audit import Floats, Ints

MARGIN: Final = 0.005
"""Distance of a draw from its token's interval that numerics may cause; of a correct sampler it was
at most .0033, but .03 in bfloat16: see docs/measurements.md."""
_PRECISE: Final = frozenset({"float16", "float32"})
UNNAMED: Final = "whose evidence does not name a seed, a dtype and a fixed k"
UNDRAFTED: Final = "with drafts of a model that was not rescored (`--rescore-draft`)"
_FOLLOWED: Final = 8
"""Ways that are followed after a miss."""
_SEEDS: Final = 2**32


def of_answer(
    one: Generation, laws: Floats, tokens: Ints, drafts: Floats | None, dtypes: frozenset[str]
) -> Floats | str:
    """Return the distance of each token, or why the answer cannot be judged by its seed.

    `laws` and `drafts`: the distributions of the baseline's and of the draft model, one row a
    token; `dtypes`: what these models compute in.
    """
    if (named := _named(one.seeded_draws)) is None or one.seed is None:
        return UNNAMED
    dtype, k = named
    if (why := _unjudged(one, k, dtypes | {dtype}, is_drafted=drafts is not None)) is not None:
        return why
    noise = uniforms(one.seed, len(tokens), 2 * k + 1)
    q = laws if drafts is None else drafts
    return Replay(laws, q, tokens, noise, one.max_tokens or len(tokens)).far()


def _unjudged(one: Generation, k: int, dtypes: frozenset[str], *, is_drafted: bool) -> str | None:
    """Return why an answer whose draws are named cannot be judged by its seed."""
    method = None if one.speculation is None else one.speculation.method
    reasons = {
        f"computed or rescored in {', '.join(sorted(dtypes - _PRECISE))}": not dtypes <= _PRECISE,
        UNNAMED: one.seed is None or not 0 <= one.seed < _SEEDS,
        "with drafts that no draft model drew": k > 0 and method != "draft_model",
        UNDRAFTED: k > 0 and not is_drafted,
        "without a limit of output tokens": k > 0 and one.max_tokens is None,
    }
    return next((why for why, holds in reasons.items() if holds), None)


def _named(text: str | None) -> tuple[str, int] | None:
    """Return dtype and k of `float32 k=4`; `None` if the text names neither."""
    dtype, _, k = (text or "").partition(" k=")
    return (dtype, int(k)) if dtype and k.isdecimal() and len(k) < 4 else None


def uniforms(seed: int, steps: int, width: int) -> Floats:
    """Return torch's first doubles in [0, 1) of a CPU generator, (steps, width)."""
    generator = np.random.RandomState(seed)  # the same Mersenne Twister, seeded as torch does
    raw = generator.randint(0, 2**32, 2 * steps * width, dtype=np.uint32).astype(np.uint64)
    bits = (raw[0::2] << np.uint64(32) | raw[1::2]) & np.uint64(2**53 - 1)
    return (bits.astype(np.float64) / 2.0**53).reshape(steps, width)


class _StepPosition(NamedTuple):
    """A token's place: its step, and the draft tokens kept before it in that step."""

    step: int
    kept: int


class _Way(NamedTuple):
    """A way in which a token may have come about, and the place of the next one."""

    far: float
    then: _StepPosition


@dataclass(frozen=True, slots=True)
class Replay:
    """One answer's tokens beside its draws."""

    p: Floats
    q: Floats
    tokens: Ints
    noise: Floats
    """(steps, 2k + 1)"""
    limit: int
    """The limit of output tokens: the last one is never drafted."""

    def far(self) -> Floats:
        """Return the distance of each token from the nearest draws that give it."""
        places, found = {_StepPosition(0, 0)}, []
        for at in range(len(self.tokens)):
            ways = sorted(way for place in places for way in self._ways(at, place))
            found.append(ways[0].far)
            near = [way for way in ways if way.far <= MARGIN]
            places = {way.then for way in near or ways[:_FOLLOWED]}
        return np.array(found, dtype=np.float64)

    def _ways(self, at: int, place: _StepPosition) -> list[_Way]:
        """Return the ways to a token: drafted and kept, or drawn by the target itself."""
        k = self.noise.shape[1] // 2
        draws, token, p = self.noise[place.step], self.tokens[at], self.p[at]
        ended = _StepPosition(place.step + 1, 0)
        if place.kept == k or at >= self.limit - 1:
            return [_Way(float(_distances(p, draws[-1])[token]), ended)]
        q, drafted, tested = self.q[at], draws[place.kept], draws[k + place.kept]
        odds = np.minimum(np.divide(p, q, out=np.ones_like(p), where=q > 0), 1.0)
        drawn = np.where(q > 0, _distances(q, drafted), np.inf)
        kept = max(drawn[token], tested - odds[token])
        rejected = np.maximum(drawn, odds - tested).min()
        left = np.maximum(p - q, 0.0)
        left = left if left.any() else p
        redrawn = max(rejected, _distances(left / left.sum(), draws[-1])[token])
        return [
            _Way(float(kept), _StepPosition(place.step, place.kept + 1)),
            _Way(float(redrawn), ended),
        ]


def _distances(law: Floats, drawn: float) -> Floats:
    """Return the draw's distance from each token's interval of cumulative probability, by id."""
    high = law.cumsum()
    return np.maximum(np.maximum(high - law - drawn, drawn - high), 0.0)
