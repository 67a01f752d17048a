"""Sums by prompt, from which every forecast is computed, and their bootstrap."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from evals.evidence import FloatColumn


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
        for _ in range(draws):
            times = np.bincount(generator.integers(n, size=n), minlength=n).astype(np.float64)
            yield Sums(**{k: np.tensordot(times, v, axes=1) for k, v in columns.items()})
