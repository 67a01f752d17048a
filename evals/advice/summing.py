"""Sum pairs by prompt, for the forecasts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evals.advice.observations import Observation, StepCounts, Times
from evals.advice.sums import Sums


class Modelled(NamedTuple):
    """A pair with all the fields that the model needs."""

    prompt: str
    k: int
    counts: StepCounts
    accepted_per_pos: tuple[int, ...]
    decode_s: float
    baseline: Times
    baseline_decode_s: float
    baseline_tokens: int


def modelled(pairs: Sequence[Observation]) -> list[Modelled]:
    """Return the pairs with both arms' times, verify steps and accepted tokens by position.

    If k was not recorded, it is the last position at which any of these pairs accepted a token.
    """
    lists = [p.counts.accepted_per_pos for p in pairs if p.counts is not None]
    widest = max((_last(found) for found in lists if found is not None), default=0)
    return [m for p in pairs if (m := _modelled(p, widest)) is not None]


def _modelled(pair: Observation, widest: int) -> Modelled | None:
    counts, baseline, candidate = pair.counts, pair.baseline, pair.candidate
    if counts is None or baseline is None or candidate is None:
        return None
    per_pos, decode_s, baseline_s = counts.accepted_per_pos, candidate.decode_s, baseline.decode_s
    if per_pos is None or decode_s is None or baseline_s is None or counts.steps < 1:
        return None
    if baseline.output_tokens is None or baseline.output_tokens < 2:
        return None
    k = max(counts.k or widest, _last(per_pos))
    if k < 1:
        return None
    tokens = baseline.output_tokens - 1
    return Modelled(pair.prompt, k, counts, per_pos, decode_s, baseline, baseline_s, tokens)


def _last(per_pos: tuple[int, ...]) -> int:
    return max((j + 1 for j, count in enumerate(per_pos) if count > 0), default=0)


def sums_of(pairs: Sequence[Modelled]) -> Sums:
    """Return the sums by prompt; needs at least one pair."""
    longest = max(p.k for p in pairs)
    number = {prompt: i for i, prompt in enumerate(sorted({p.prompt for p in pairs}))}
    by_k = (len(number), longest)
    sums = Sums(
        steps=np.zeros(by_k),
        decode_steps=np.zeros(by_k),
        decode_s=np.zeros(by_k),
        accepted_per_pos=np.zeros((*by_k, longest)),
        baseline_decode_s=np.zeros(by_k),
        baseline_decode_tokens=np.zeros(by_k),
    )
    for p in pairs:
        at = (number[p.prompt], p.k - 1)
        sums.steps[at] += p.counts.steps
        sums.decode_steps[at] += p.counts.decode_steps
        sums.decode_s[at] += p.decode_s
        accepted = p.accepted_per_pos[:longest]
        sums.accepted_per_pos[at][: len(accepted)] += accepted
        sums.baseline_decode_s[at] += p.baseline_decode_s
        sums.baseline_decode_tokens[at] += p.baseline_tokens
    return sums
