"""Greedy answers token by token: where the candidate left the baseline's path, and whether it may.

Verifying k + 1 rows at once and decoding one add up in another order, so that two tokens whose
logits are equal up to rounding may swap. Such a divergence is benign; a larger gap is not greedy
decoding of the baseline.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_MANTISSA_BITS = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}
_NOISE_QUANTILE = 0.999


class Rescorer(Protocol):
    """The baseline's model at hand: one forward pass over a text of tokens."""

    dtype: str
    """`float32`, `bfloat16`, `float16` or `float64`."""

    def next_logits(self, tokens: Sequence[int]) -> NDArray[np.float64]:
        """Return the logits of the token after these: teacher forcing, nothing is kept."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One prompt's two answers, as token ids."""

    tokens: int
    """Tokens compared: up to the first divergence, or the whole answer."""
    position: int | None
    """Index of the first token that differs; None where the answers are equal."""
    baseline_token: int | None = None
    """None where the baseline's answer had ended there."""
    candidate_token: int | None = None
    round_position: int | None = None
    """Place in the candidate's verify round; None where the rounds are not known."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What teacher forcing says of a divergence."""

    gap: float
    """The baseline's highest logit less that of the candidate's token."""
    allowed: float
    """The gap up to which it is a tie."""
    benign: bool


def compare(
    baseline: Sequence[int], candidate: Sequence[int], emitted_a_round: Sequence[int] | None = None
) -> Compared:
    """Return where two greedy answers first differ; an end is a token too.

    `emitted_a_round` are the tokens that each of the candidate's verify rounds emitted.
    """
    shared = min(len(baseline), len(candidate))
    pairs = zip(baseline, candidate, strict=False)
    at = next((i for i, (b, c) in enumerate(pairs) if b != c), None)
    if at is None and len(baseline) == len(candidate):
        return Compared(shared, None)
    at = shared if at is None else at
    return Compared(
        tokens=at + 1,
        position=at,
        baseline_token=baseline[at] if at < len(baseline) else None,
        candidate_token=candidate[at] if at < len(candidate) else None,
        round_position=_place(at, emitted_a_round),
    )


def confirm(
    logits: NDArray[np.float64], candidate_token: int, *, dtype: str, noise: float
) -> Confirmed:
    """Say whether the candidate's token ties with the baseline's best.

    ε = max(2 ulp of the dtype at the highest |logit|, `noise`), a gap up to ε is benign; bfloat16
    has an ulp of .125 at logits from 16 to 32.
    """
    top = float(logits.max())
    gap = top - float(logits[candidate_token])
    allowed = max(2 * ulp(top, dtype), noise)
    return Confirmed(gap, allowed, gap <= allowed)


def ulp(value: float, dtype: str) -> float:
    """Return the distance from a number to the next one that the dtype can hold."""
    if dtype not in _MANTISSA_BITS:
        known = ", ".join(_MANTISSA_BITS)
        raise ValueError(f"dtype: wanted one of {known}, got {dtype!r}")
    magnitude = max(abs(value), float(np.finfo(np.float32).tiny))
    return float(2.0 ** (np.floor(np.log2(magnitude)) - _MANTISSA_BITS[dtype]))


def gap_noise(gaps: NDArray[np.float64]) -> float:
    """Return the least gap that 99.9 % of an A/A run's do not exceed; 0 where it had none."""
    return float(np.quantile(gaps, _NOISE_QUANTILE, method="higher")) if len(gaps) else 0.0


def _place(at: int, emitted_a_round: Sequence[int] | None) -> int | None:
    if emitted_a_round is None:
        return None
    ends = np.cumsum(emitted_a_round)
    which = int(np.searchsorted(ends, at, side="right"))
    if which == len(ends):
        return None  # beyond what the rounds account for
    return at - (int(ends[which - 1]) if which else 0)
