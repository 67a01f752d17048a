"""Compare greedy answers by token: the first divergence, and whether it is only rounding.

Verifying k + 1 rows at once sums in another order than decoding one row, so two tokens whose
logits are equal up to rounding may swap. Such a divergence is benign; with a larger gap the
candidate's token is not the baseline's greedy choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_MANTISSA_BITS = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}
_NOISE_QUANTILE = 0.999


class Rescorer(Protocol):
    """The baseline's model, for forward passes over given tokens."""

    dtype: str
    """`float32`, `bfloat16`, `float16` or `float64`."""

    def next_logits(self, tokens: Sequence[int]) -> NDArray[np.float64]:
        """Return the logits of the token after these (teacher forcing); stateless."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison of one prompt's two answers, as token ids."""

    tokens: int
    """Tokens compared: up to the first divergence, or the whole answer."""
    position: int | None
    """Index of the first token that differs; None if the answers are equal."""
    baseline_token: int | None = None
    """None if the baseline's answer ended there."""
    candidate_token: int | None = None
    """None if the candidate's answer ended there."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A divergence, rescored with teacher forcing."""

    gap: float
    """The baseline's highest logit minus the logit of the candidate's token."""
    allowed: float
    """The largest gap that counts as a tie."""
    benign: bool


def compare(baseline: Sequence[int], candidate: Sequence[int]) -> Compared:
    """Return where two greedy answers first differ; the end of an answer counts as a token."""
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
    )


def confirm(
    logits: NDArray[np.float64], candidate_token: int, *, dtype: str, noise: float
) -> Confirmed:
    """Check whether the candidate's token ties with the baseline's best token.

    A gap up to ε = max(2 ulp of the dtype at the highest logit, `noise`) is benign. For bfloat16
    an ulp is .125 at logits from 16 to 32.
    """
    top = float(logits.max())
    gap = top - float(logits[candidate_token])
    allowed = max(2 * ulp(top, dtype), noise)
    return Confirmed(gap, allowed, gap <= allowed)


def ulp(value: float, dtype: str) -> float:
    """Return the distance from a number to the next one that the dtype can represent."""
    if dtype not in _MANTISSA_BITS:
        known = ", ".join(_MANTISSA_BITS)
        raise ValueError(f"dtype: wanted one of {known}, got {dtype!r}")
    magnitude = max(abs(value), float(np.finfo(np.float32).tiny))
    return float(2.0 ** (np.floor(np.log2(magnitude)) - _MANTISSA_BITS[dtype]))


def gap_noise(gaps: NDArray[np.float64]) -> float:
    """Return the 99.9 % quantile of an A/A run's gaps (numpy's `higher`); 0 without gaps."""
    return float(np.quantile(gaps, _NOISE_QUANTILE, method="higher")) if len(gaps) else 0.0
