"""Sums by prompt, from which every forecast is computed, and their bootstrap."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from evals.evidence.columns import FloatColumn

_AT_ONCE: Final = 50
"""How many bootstrap samples are summed at once, which bounds the memory for many prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums of pairs, of shape (prompts, k − 1); `accepted_per_pos` has a third axis, the position.

    Totals over all prompts lack the first axis.
    """

    steps: FloatColumn
    decode_steps: FloatColumn
    """Steps between the first token and the last."""
    decode_s: FloatColumn
    """The candidate's seconds between the first token and the last."""
    accepted_per_pos: FloatColumn
    baseline_decode_s: FloatColumn
    """The baseline's seconds in the same pairs, by the candidate's k."""
    baseline_decode_tokens: FloatColumn

    @property
    def baseline_step_s(self) -> FloatColumn:
        """The baseline's seconds per token after the first, for each k; NaN without tokens."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.baseline_decode_s / self.baseline_decode_tokens)

    @property
    def step_s(self) -> FloatColumn:
        """The candidate's seconds per step at each k; NaN without steps."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.decode_s / self.decode_steps)

    def total(self) -> "Sums":
        """Return the sums over all prompts."""
        return Sums(**{f.name: getattr(self, f.name).sum(axis=0) for f in fields(self)})

    def resampled(self, draws: int, seed: int) -> Iterator["Sums"]:
        """Yield the total of each bootstrap sample of prompts."""
        generator, n = np.random.default_rng(seed), len(self.steps)
        columns = {f.name: getattr(self, f.name) for f in fields(self)}
        for first in range(0, draws, _AT_ONCE):
            times = np.zeros((min(_AT_ONCE, draws - first), n))
            for row in times:
                row[:] = np.bincount(generator.integers(n, size=n), minlength=n)
            totals = {name: np.tensordot(times, of, axes=1) for name, of in columns.items()}
            yield from (Sums(**{k: of[i] for k, of in totals.items()}) for i in range(len(times)))
